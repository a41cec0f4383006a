package electionotel

import (
	"fmt"
	"sync"
	"weak"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/electkv/election"
)

// scope names this package as the source of what it tells.
const scope = "github.com/electkv/election/observe/otel"

// Options say where to tell what elections do. The zero value of each field means its
// default.
type Options struct {
	// MeterProvider takes the metrics. Default: the global one, of otel.GetMeterProvider.
	MeterProvider metric.MeterProvider

	// TracerProvider takes the spans. Default: the global one, of otel.GetTracerProvider.
	TracerProvider trace.TracerProvider

	// Group returns the value of the attribute election.name in metrics for an election's name,
	// and must depend on nothing else. Elections with the same value are counted together, for
	// a process with thousands of them: leaders and roles are added up, the remaining trust is the
	// least of all leaders, the contact with the store is the latest, and there is no token.
	// Spans have the election's own name. Default: the name, so that each election is alone.
	Group func(name string) string
}

// Telemetry tells OpenTelemetry what candidates do. Use [New] to make one. It may be used by any
// goroutine.
type Telemetry struct {
	group  func(name string) string
	tracer trace.Tracer
	counts counts
	gauges gauges
	hooks  *election.Hooks

	mu         sync.Mutex
	candidates map[weak.Pointer[election.Candidate]]campaigns
}

// New returns what tells the providers. Make one for all candidates of a process: its gauges
// stay with the meter provider. Options may be nil. The error is the meter provider's, which
// refuses an instrument.
func New(opts *Options) (*Telemetry, error) {
	o := Options{}
	if opts != nil {
		o = *opts
	}
	if o.MeterProvider == nil {
		o.MeterProvider = otel.GetMeterProvider()
	}
	if o.TracerProvider == nil {
		o.TracerProvider = otel.GetTracerProvider()
	}
	if o.Group == nil {
		o.Group = func(name string) string { return name }
	}
	t := &Telemetry{
		group:      o.Group,
		tracer:     o.TracerProvider.Tracer(scope),
		candidates: make(map[weak.Pointer[election.Candidate]]campaigns),
	}
	m := maker{meter: o.MeterProvider.Meter(scope)}
	t.counts, t.gauges = newCounts(&m), newGauges(&m)
	if m.err == nil {
		_, m.err = m.meter.RegisterCallback(t.observe, t.gauges.all()...)
	}
	if m.err != nil {
		return nil, fmt.Errorf("electionotel: %w", m.err)
	}
	t.hooks = &election.Hooks{
		CampaignStart: t.campaignStart,
		CampaignDone:  t.campaignDone,
		TermStart:     t.termStart,
		RefreshDone:   t.refreshDone,
		TermDone:      t.termDone,
		ReleaseDone:   t.releaseDone,
		StoreDone:     t.storeDone,
		Dropped:       t.dropped,
	}
	return t, nil
}

// Hooks returns the hooks for election.Options, always the same.
func (t *Telemetry) Hooks() *election.Hooks { return t.hooks }
