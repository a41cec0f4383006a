// Package electionprom has metrics of elections for Prometheus
// (github.com/prometheus/client_golang).
//
//	metrics := electionprom.New(nil)
//	prometheus.MustRegister(metrics)
//	candidate, err := election.New(store, "billing", &election.Options{Hooks: metrics.Hooks()})
//
// All candidates of a process may share one Metrics. To give the metrics labels or a prefix
// of your own, register them with prometheus.WrapRegistererWith or its like. The alert rules
// and the dashboard in the folder deploy of the repository use the names without a prefix.
//
// # Gauges
//
// Gauges are computed when they are scraped, from [election.Candidate.Status] and the clock. So
// election_is_leader is 0 from the moment at which the lease cannot be trusted any more, even
// if the store hangs and no hook was called. The gauges of a scrape may differ from those of
// another process's scrape by the time between the two: see deploy/prometheus/alerts.yml for how
// to find two leaders all the same.
//
// # Counters and histograms
//
// They count what hooks are told. Events after a process's last scrape are not counted,
// such as the end of its last term. If another hook blocks for so long that calls are
// dropped, counts are too small by what election_hook_calls_dropped_total says.
//
// # Labels
//
// The label "election" is the name of the election. Other labels are "role", "reason",
// "op" and "outcome", with the few values that package election has for them. Each election has about
// 130 series in each process. With thousands of elections in one process, set
// [Options.Group], which makes one election of many in the metrics.
package electionprom
