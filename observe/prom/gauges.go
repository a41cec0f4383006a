package electionprom

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// gauges are computed at each scrape.
type gauges struct {
	elections, leader, role, token, trust, ttl, contact *prometheus.Desc
}

func newGauges() gauges {
	return gauges{
		elections: gauge("elections", "Elections in which the process takes part: 1, unless they are grouped."),
		leader: gauge("is_leader",
			"Whether the process leads at this moment: 1 or 0. Of grouped elections, how many it leads."),
		role: gauge("role",
			"How many of the process's candidates have each role. An election without a campaign counts as one idle candidate.",
			"role"),
		token: gauge("token",
			"Fencing token of the term in which the process leads; 0 if it does not lead. Missing for grouped elections."),
		trust: gauge("trust_remaining_seconds",
			"For how long the lease can be trusted without another refresh; 0 if the process does not lead."),
		ttl: gauge("ttl_seconds", "How long a leader that vanished keeps others out."),
		contact: gauge("store_contact_timestamp_seconds",
			"When the store last gave a clear answer, or a watch showed something; 0 if never."),
	}
}

func gauge(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("election_"+name, help, append([]string{"election"}, labels...), nil)
}

func (g *gauges) describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{g.elections, g.leader, g.role, g.token, g.trust, g.ttl, g.contact} {
		ch <- d
	}
}

// send sends the gauges of a series.
func (g *gauges) send(ch chan<- prometheus.Metric, s *state) {
	send := func(d *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, append([]string{s.label}, labels...)...)
	}
	send(g.elections, float64(s.elections))
	send(g.leader, float64(s.leaders))
	for role, n := range s.roles {
		send(g.role, float64(n), string(role))
	}
	if s.alone {
		send(g.token, float64(s.token))
	}
	send(g.trust, s.trust.Seconds())
	send(g.ttl, s.ttl.Seconds())
	send(g.contact, timestamp(s.contact))
}

// timestamp returns a time in seconds since 1970, to the millisecond. It is 0 for none.
func timestamp(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
}
