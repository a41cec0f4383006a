package electionprom_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/mem"

	"github.com/electkv/election/observe/prom"
)

// many is how many elections one process may well take part in.
const many = 10_000

// lead has a process lead many elections, and returns what its metrics are registered with.
func lead(t testing.TB, opts *electionprom.Options) *prometheus.Registry {
	store, metrics := memkv.New(), electionprom.New(opts)
	var crowd sync.WaitGroup
	for i := range many {
		opts := &election.Options{TTL: time.Hour, NoHeir: true, Hooks: metrics.Hooks()}
		c, err := election.New(store, fmt.Sprintf("job-%05d", i), opts)
		require.NoError(t, err)
		crowd.Go(func() {
			term, err := c.Campaign(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { _ = term.Resign(context.Background()) })
		})
	}
	crowd.Wait()
	registry := prometheus.NewRegistry()
	require.NoError(t, registry.Register(metrics))
	return registry
}

func together(string) string { return "jobs" }

func TestTenThousandElectionsCanBeOne(t *testing.T) {
	registry := lead(t, &electionprom.Options{Group: together})
	p := &process{T: t, registry: registry}
	counted := func() bool { return p.scrape()["election_terms_total{jobs}"] == many }
	require.Eventually(t, counted, time.Minute, 10*time.Millisecond, "hooks are called soon")
	got := p.scrape()
	require.Less(t, len(got), 60)
	require.InDelta(t, many, got["election_elections{jobs}"], 0)
	require.InDelta(t, many, got["election_is_leader{jobs}"], 0)
	require.InDelta(t, many, got["election_role{jobs,leader}"], 0)
	require.InDelta(t, many, got["election_campaign_seconds{jobs}"], 0)
	require.InDelta(t, 0.9*3600, got["election_trust_remaining_seconds{jobs}"], 300, "the shortest")
}

// What a scrape costs: its time, its memory and its bytes; and what the metrics keep in memory.
func BenchmarkScrapeOfTenThousandElections(b *testing.B) {
	for name, opts := range map[string]*electionprom.Options{
		"each":     nil,
		"together": {Group: together},
		"native":   {NativeHistograms: true},
	} {
		b.Run(name, func(b *testing.B) {
			before := inUse()
			registry := lead(b, opts)
			handler := promhttp.HandlerFor(registry, promhttp.HandlerOpts{DisableCompression: true})
			time.Sleep(time.Second) // until all hooks were called
			kept := inUse() - before
			b.ReportAllocs()
			var size int
			for b.Loop() {
				answer := httptest.NewRecorder()
				handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
				size = answer.Body.Len()
			}
			b.ReportMetric(float64(size)/1e6, "MB/scrape")
			b.ReportMetric(float64(kept)/many/1e3, "kB/election")
		})
	}
}

// inUse returns the bytes that the heap has.
func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
