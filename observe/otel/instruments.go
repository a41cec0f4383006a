package electionotel

import (
	"errors"

	"go.opentelemetry.io/otel/metric"
)

const seconds = "s"

// counts are the instruments that hooks record to.
type counts struct {
	terms, ended, errors, dropped          metric.Int64Counter
	term, campaign, drain, refresh, margin metric.Float64Histogram
}

func newCounts(m *maker) counts {
	return counts{
		terms: m.counter("election.terms", "{term}", "Terms that began."),
		ended: m.counter("election.terms_ended", "{term}", "Terms that ended, by reason."),
		errors: m.counter("election.store.errors", "{error}",
			"Requests to the store without a clear answer, and watches that broke, by operation."),
		dropped: m.counter("election.hook.calls_dropped", "{call}",
			"Calls of hooks that were dropped because a hook blocked. What they would have told is missing."),
		term:     m.histogram("election.term.duration", "How long terms lasted.", stretches()),
		campaign: m.histogram("election.campaign.duration", "How long campaigns took that won a term.", stretches()),
		drain: m.histogram("election.drain.duration",
			"How long work went on after the end of its context; 0 if it stopped first.", waits()),
		refresh: m.histogram("election.refresh.duration", "How long refreshes of leaders' leases took, by outcome.", waits()),
		margin: m.histogram("election.refresh.margin",
			"Trust in the lease that was left when a refresh had succeeded, without what that added; 0 if too late.", margins()),
	}
}

// stretches are the bounds for what lasts a moment or a month.
func stretches() []float64 {
	const minute, hour, day = 60, 60 * 60, 24 * 60 * 60
	return []float64{0.1, 1, 5, 15, minute, 5 * minute, 15 * minute, hour, 6 * hour, day, 7 * day, 30 * day}
}

// waits are the bounds for requests and for work that stops.
func waits() []float64 {
	return []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}
}

// margins are the bounds for trust that is left, whatever the TTL. The first is for what came too
// late.
func margins() []float64 {
	bounds := []float64{0}
	for b := 0.05; b < 1000; b *= 2 {
		bounds = append(bounds, b)
	}
	return bounds
}

// gauges are the instruments that are observed when metrics are collected. What can be added up
// is an up-down counter.
type gauges struct {
	leader, role       metric.Int64ObservableUpDownCounter
	token              metric.Int64ObservableGauge
	remaining, contact metric.Float64ObservableGauge
}

func newGauges(m *maker) gauges {
	return gauges{
		leader: m.upDown("election.is_leader", "{candidate}", "Candidates of this process that lead."),
		role:   m.upDown("election.role", "{candidate}", "Candidates of this process, by role."),
		token:  m.whole("election.token", "{token}", "Fencing token of the term, while it lasts."),
		remaining: m.gauge("election.trust.remaining",
			"For how long the lease can be trusted without another refresh, while the term lasts."),
		contact: m.gauge("election.store.contact.timestamp", "When the store last gave a clear answer (Unix time)."),
	}
}

func (g *gauges) all() []metric.Observable {
	return []metric.Observable{g.leader, g.role, g.token, g.remaining, g.contact}
}

// A maker makes instruments, and keeps the errors.
type maker struct {
	meter metric.Meter
	err   error
}

func (m *maker) counter(name, unit, what string) metric.Int64Counter {
	i, err := m.meter.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(what))
	m.err = errors.Join(m.err, err)
	return i
}

func (m *maker) histogram(name, what string, bounds []float64) metric.Float64Histogram {
	i, err := m.meter.Float64Histogram(name, metric.WithUnit(seconds), metric.WithDescription(what),
		metric.WithExplicitBucketBoundaries(bounds...))
	m.err = errors.Join(m.err, err)
	return i
}

func (m *maker) upDown(name, unit, what string) metric.Int64ObservableUpDownCounter {
	i, err := m.meter.Int64ObservableUpDownCounter(name, metric.WithUnit(unit), metric.WithDescription(what))
	m.err = errors.Join(m.err, err)
	return i
}

func (m *maker) whole(name, unit, what string) metric.Int64ObservableGauge {
	i, err := m.meter.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(what))
	m.err = errors.Join(m.err, err)
	return i
}

func (m *maker) gauge(name, what string) metric.Float64ObservableGauge {
	i, err := m.meter.Float64ObservableGauge(name, metric.WithUnit(seconds), metric.WithDescription(what))
	m.err = errors.Join(m.err, err)
	return i
}
