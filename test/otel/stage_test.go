// Package otel_test has elections told to the SDK of OpenTelemetry, which users of
// observe/otel need not have.
package otel_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/electkv/election"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/observe/otel"
)

const ttl = 10 * time.Second

// A stage has candidates whose telemetry is kept in memory.
type stage struct {
	t         *testing.T
	spans     *tracetest.InMemoryExporter
	tracers   *trace.TracerProvider
	reader    *metric.ManualReader
	telemetry *electionotel.Telemetry
	drain     time.Duration // for which work goes on after the end of its context
}

func newStage(t *testing.T, group func(string) string, opts ...trace.TracerProviderOption) *stage {
	t.Helper()
	s := &stage{t: t, spans: tracetest.NewInMemoryExporter(), reader: metric.NewManualReader()}
	s.tracers = trace.NewTracerProvider(append(opts, trace.WithSyncer(s.spans))...)
	telemetry, err := electionotel.New(&electionotel.Options{
		MeterProvider:  metric.NewMeterProvider(metric.WithReader(s.reader)),
		TracerProvider: s.tracers,
		Group:          group,
	})
	require.NoError(t, err)
	s.telemetry = telemetry
	return s
}

// candidate returns one whose hooks are those of the stage.
func (s *stage) candidate(store kv.Store, name, id string, change ...func(*election.Options)) *election.Candidate {
	s.t.Helper()
	opts := &election.Options{ID: id, TTL: ttl, NoHeir: true, Hooks: s.telemetry.Hooks()}
	for _, c := range change {
		c(opts)
	}
	c, err := election.New(store, name, opts)
	require.NoError(s.t, err)
	return c
}

func firstCome(o *election.Options) { o.NoHeir, o.Succession = false, election.FirstCome }

// run has a candidate lead until the returned function is called, or the test ends.
func (s *stage) run(ctx context.Context, c *election.Candidate) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		done <- c.Run(ctx, func(ctx context.Context, _ *election.Term) error {
			<-ctx.Done()
			time.Sleep(s.drain)
			return nil
		})
	}()
	var stopped bool
	stop = func() {
		if !stopped {
			stopped = true
			cancel()
			require.ErrorIs(s.t, <-done, election.ErrStopped)
		}
	}
	s.t.Cleanup(stop)
	return stop
}

// caller returns a context with a span that is under way, as a request's handler has one.
func (s *stage) caller(name string) (context.Context, func()) {
	ctx, span := s.tracers.Tracer("test").Start(s.t.Context(), name)
	return ctx, func() { span.End() }
}

// metrics collects what there is, as lines of text without the histograms' buckets.
func (s *stage) metrics() map[string]float64 {
	s.t.Helper()
	lines := make(map[string]float64)
	for _, m := range s.collect() {
		unit := "[" + m.Unit + "]"
		switch data := m.Data.(type) {
		case metricdata.Sum[int64]:
			fill(lines, m.Name+unit, data.DataPoints)
		case metricdata.Gauge[int64]:
			fill(lines, m.Name+unit, data.DataPoints)
		case metricdata.Gauge[float64]:
			fill(lines, m.Name+unit, data.DataPoints)
		case metricdata.Histogram[float64]:
			for _, p := range data.DataPoints {
				lines[m.Name+".count"+labels(p.Attributes)] = float64(p.Count)
				lines[m.Name+".sum"+unit+labels(p.Attributes)] = p.Sum
			}
		default:
			s.t.Fatalf("%s has an unknown form: %T", m.Name, data)
		}
	}
	return lines
}

func (s *stage) collect() []metricdata.Metrics {
	s.t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(s.t, s.reader.Collect(context.Background(), &all))
	if len(all.ScopeMetrics) == 0 {
		return nil
	}
	require.Len(s.t, all.ScopeMetrics, 1)
	require.Equal(s.t, "github.com/electkv/election/observe/otel", all.ScopeMetrics[0].Scope.Name)
	return all.ScopeMetrics[0].Metrics
}

func fill[N int64 | float64](lines map[string]float64, name string, points []metricdata.DataPoint[N]) {
	for _, p := range points {
		lines[name+labels(p.Attributes)] = float64(p.Value)
	}
}

func labels(set attribute.Set) string {
	var all []string
	for _, a := range set.ToSlice() {
		all = append(all, fmt.Sprintf("%s=%s", a.Key, a.Value.String()))
	}
	return "{" + strings.Join(all, ",") + "}"
}

// drawn returns the spans that have ended, in the order of their beginnings.
func (s *stage) drawn() []tracetest.SpanStub {
	all := s.spans.GetSpans()
	slices.SortStableFunc(all, func(a, b tracetest.SpanStub) int { return a.StartTime.Compare(b.StartTime) })
	return all
}

// named returns the spans with a name, at least one.
func (s *stage) named(name string) (all []tracetest.SpanStub) {
	s.t.Helper()
	for _, span := range s.drawn() {
		if span.Name == name {
			all = append(all, span)
		}
	}
	require.NotEmpty(s.t, all, "no span %s in %s", name, s.outline())
	return all
}

// one returns the only span with a name that a candidate has.
func (s *stage) one(name, id string) tracetest.SpanStub {
	s.t.Helper()
	var of []tracetest.SpanStub
	for _, span := range s.named(name) {
		if attributesOf(span)["election.candidate.id"] == id {
			of = append(of, span)
		}
	}
	require.Len(s.t, of, 1, "%s of %s", name, id)
	return of[0]
}

// outline draws the traces as text: each span with its parent, or with what it links to.
func (s *stage) outline() (lines []string) {
	names := make(map[string]string)
	for _, span := range s.drawn() {
		names[span.SpanContext.SpanID().String()] = span.Name
	}
	for _, span := range s.drawn() {
		line := span.Name
		if span.Parent.IsValid() {
			line += " in " + names[span.Parent.SpanID().String()]
		}
		for _, l := range span.Links {
			line += " linked to " + names[l.SpanContext.SpanID().String()]
		}
		if span.Status.Code == codes.Error {
			line += " failed"
		}
		lines = append(lines, line)
	}
	return lines
}

func attributesOf(span tracetest.SpanStub) map[string]string {
	all := make(map[string]string)
	for _, a := range span.Attributes {
		all[string(a.Key)] = a.Value.String()
	}
	return all
}
