package electionprom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/electkv/election"
)

// Options are those of [New]. The zero value has the defaults.
type Options struct {
	// Group returns the value of the label "election" for an election's name, and must depend on
	// nothing else. Elections with the same value are counted together: election_is_leader is
	// the number of those that the process leads, election_elections is how many there are,
	// the trust and the TTL are the shortest, the contact is the newest, and there is no
	// election_token. Default: the name, so that each election is alone.
	Group func(name string) string

	// NativeHistograms adds native histograms to those with fixed buckets. A Prometheus that
	// takes them drops the fixed buckets.
	NativeHistograms bool
}

// Metrics are those of all candidates that have its Hooks. It is a prometheus.Collector. Use
// [New] to make one. Its methods may be called by any goroutine.
type Metrics struct {
	hooks  *election.Hooks
	known  known
	gauges gauges
	counts counts
}

var _ prometheus.Collector = (*Metrics)(nil)

// New returns metrics that know no candidate yet. Options may be nil.
func New(opts *Options) *Metrics {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.Group == nil {
		o.Group = func(name string) string { return name }
	}
	m := &Metrics{
		known:  known{group: o.Group, elections: make(map[string]*contest), series: make(map[string]*series)},
		gauges: newGauges(),
		counts: newCounts(o.NativeHistograms),
	}
	m.hooks = m.newHooks()
	return m
}

// Hooks returns the hooks for Options.Hooks of candidates and of locks: the same each time. If
// you have hooks of your own, use election.JoinHooks. A candidate is known from its first
// campaign on.
func (m *Metrics) Hooks() *election.Hooks { return m.hooks }

// Forget removes an election's series, if no other has the same. Call it when no candidate
// of this process will campaign for that election again: metrics do not know when that is, and
// keep what they have counted. If one campaigns all the same, the election is known
// again, and its counters begin at zero.
func (m *Metrics) Forget(name string) {
	if s := m.known.forget(name); s != nil {
		m.counts.forget(s.label)
	}
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	m.gauges.describe(ch)
	for _, v := range m.counts.all() {
		v.Describe(ch)
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	for _, s := range m.known.now() {
		m.gauges.send(ch, &s)
	}
	for _, v := range m.counts.all() {
		v.Collect(ch)
	}
}
