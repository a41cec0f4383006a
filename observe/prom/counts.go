package electionprom

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/electkv/election"
)

// counts are counted as things happen.
type counts struct {
	terms, ended, overruns, errors           *prometheus.CounterVec
	term, campaign, drain, refreshes, margin *prometheus.HistogramVec
	dropped                                  prometheus.Counter
}

func newCounts(native bool) counts {
	return counts{
		terms: counter("terms_total", "Terms that have begun."),
		ended: counter("terms_ended_total", "Terms that have ended, by reason.", "reason"),
		overruns: counter("drain_overruns_total",
			"Terms whose work took longer than the margin to stop, by the reason why the term ended.", "reason"),
		errors: counter("store_errors_total",
			"Requests to the store without a clear answer, and watches that ended with an error, by operation.", "op"),

		term:     histogram(native, "term_seconds", "How long terms lasted.", spans()),
		campaign: histogram(native, "campaign_seconds", "How long the campaigns took that won a term.", spans()),
		drain: histogram(native, "drain_seconds",
			"How long work went on after the end of its context; 0 if it stopped first.", waits()),
		refreshes: histogram(native, "refresh_seconds",
			"How long refreshes of the leader's lease took, by outcome.", waits(), "outcome"),
		margin: histogram(native, "refresh_margin_seconds",
			"For how long the lease could still be trusted when a refresh had succeeded, not counting what that added.", lefts()),

		dropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "election_hook_calls_dropped_total",
			Help: "Calls of hooks that were dropped because a hook blocked. Counters and histograms lack them.",
		}),
	}
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	opts := prometheus.CounterOpts{Name: "election_" + name, Help: help}
	return prometheus.NewCounterVec(opts, append([]string{"election"}, labels...))
}

func histogram(native bool, name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	opts := prometheus.HistogramOpts{Name: "election_" + name, Help: help, Buckets: buckets}
	if native {
		opts.NativeHistogramBucketFactor = 1.1
		opts.NativeHistogramMaxBucketNumber = 100
		opts.NativeHistogramMinResetDuration = time.Hour
	}
	return prometheus.NewHistogramVec(opts, append([]string{"election"}, labels...))
}

// spans are the bounds for what may last a moment or a month.
func spans() []float64 {
	const hour = 3600
	return []float64{0.1, 1, 5, 15, 60, 300, 900, hour, 6 * hour, 24 * hour, 7 * 24 * hour, 30 * 24 * hour}
}

// waits are the bounds for requests, and for work that stops: they fit TTLs from a part of a
// second to some minutes.
func waits() []float64 {
	return []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}
}

// lefts are the bounds for trust that is left. The first is for what came too late. Each of the
// others is twice the one before it, so that a share of a TTL, as in the alert LowMargin, is told
// about as well for each TTL.
func lefts() []float64 {
	return append([]float64{0}, prometheus.ExponentialBuckets(0.05, 2, 15)...)
}

// A vector is a CounterVec or a HistogramVec.
type vector interface {
	prometheus.Collector
	DeletePartialMatch(labels prometheus.Labels) int
}

// vectors returns what has the label "election".
func (c *counts) vectors() []vector {
	return []vector{c.terms, c.ended, c.overruns, c.errors, c.term, c.campaign, c.drain, c.refreshes, c.margin}
}

func (c *counts) all() []prometheus.Collector {
	all := []prometheus.Collector{c.dropped}
	for _, v := range c.vectors() {
		all = append(all, v)
	}
	return all
}

// begin makes the series of a label, so that the first of what is counted is seen as a change
// from zero.
func (c *counts) begin(label string) {
	c.terms.WithLabelValues(label)
	for _, reason := range []election.Reason{
		election.ReasonExpired, election.ReasonTaken, election.ReasonUnhealthy, election.ReasonStopped,
		election.ReasonFinished, election.ReasonAsked, election.ReasonGaveWay, election.ReasonResigned,
	} {
		c.ended.WithLabelValues(label, string(reason))
		c.overruns.WithLabelValues(label, string(reason))
	}
	for _, op := range []election.Op{
		election.OpCreate, election.OpDisplace, election.OpPublish, election.OpRefresh, election.OpHandOver, election.OpDelete,
		election.OpVacate, election.OpGet, election.OpJoin, election.OpStay, election.OpWatch,
	} {
		c.errors.WithLabelValues(label, string(op))
	}
	c.refreshes.WithLabelValues(label, string(election.OutcomeOK))
	for _, h := range []*prometheus.HistogramVec{c.term, c.campaign, c.drain, c.margin} {
		h.WithLabelValues(label)
	}
}

// forget drops the series of a label.
func (c *counts) forget(label string) {
	for _, v := range c.vectors() {
		v.DeletePartialMatch(prometheus.Labels{"election": label})
	}
}
