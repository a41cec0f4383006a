package electionotel

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/metric"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/mem"
)

// silent returns telemetry that tells nobody.
func silent(t testing.TB) *Telemetry {
	t.Helper()
	tell, err := New(&Options{MeterProvider: metricnoop.NewMeterProvider(), TracerProvider: tracenoop.NewTracerProvider()})
	require.NoError(t, err)
	return tell
}

// kept returns how many candidates and campaigns are kept.
func (t *Telemetry) kept() (candidates, campaigns int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, all := range t.candidates {
		campaigns += len(all)
	}
	return len(t.candidates), campaigns
}

func newCandidate(t testing.TB, store *memkv.Store, name, id string, tell *Telemetry) *election.Candidate {
	t.Helper()
	c, err := election.New(store, name, &election.Options{ID: id, Hooks: tell.Hooks()})
	require.NoError(t, err)
	return c
}

func TestNothingIsKeptOfACampaignThatIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tell, store := silent(t), memkv.New()
		a, b := newCandidate(t, store, "billing", "a", tell), newCandidate(t, store, "billing", "b", tell)
		for range 10 {
			require.NoError(t, a.Run(t.Context(), func(context.Context, *election.Term) error {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				_, err := b.Campaign(ctx)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				_, campaigns := tell.kept()
				require.Equal(t, 1, campaigns, "a's, for what belongs to its term")
				return nil
			}))
		}
		candidates, campaigns := tell.kept()
		require.Equal(t, 2, candidates)
		require.Zero(t, campaigns)
		runtime.KeepAlive(a)
		runtime.KeepAlive(b)
	})
}

func TestACandidateThatIsGoneIsForgotten(t *testing.T) {
	tell := silent(t)
	func() {
		term, err := newCandidate(t, memkv.New(), "billing", "a", tell).Campaign(t.Context())
		require.NoError(t, err)
		require.NoError(t, term.Resign(t.Context()))
		require.Len(t, tell.standings(), 1)
	}()
	require.Eventually(t, func() bool {
		runtime.GC()
		candidates, _ := tell.kept()
		return candidates == 0
	}, 10*time.Second, time.Millisecond)
	require.Empty(t, tell.standings())
}

func TestACampaignWhoseEndWasDroppedIsForgottenWithTheNext(t *testing.T) {
	tell := silent(t)
	c := newCandidate(t, memkv.New(), "billing", "a", tell)
	for number := range uint64(10) {
		tell.hooks.CampaignStart(t.Context(), election.CampaignStartInfo{HookInfo: election.HookInfo{Candidate: c, Campaign: number + 1}})
	}
	_, campaigns := tell.kept()
	require.Equal(t, 10, campaigns, "a candidate may campaign many times at once")
	tell.hooks.Dropped(t.Context(), election.DroppedInfo{Calls: 10})
	_, campaigns = tell.kept()
	require.Equal(t, 10, campaigns, "they may go on")
	tell.hooks.CampaignStart(t.Context(), election.CampaignStartInfo{HookInfo: election.HookInfo{Candidate: c, Campaign: 11}})
	_, campaigns = tell.kept()
	require.Equal(t, 1, campaigns)
	tell.hooks.TermDone(t.Context(), election.TermDoneInfo{HookInfo: election.HookInfo{Candidate: c, Campaign: 3}})
	tell.hooks.ReleaseDone(t.Context(), election.ReleaseDoneInfo{HookInfo: election.HookInfo{Candidate: c, Campaign: 3}})
	_, campaigns = tell.kept()
	require.Equal(t, 1, campaigns, "one of those went on")
}

// A stubborn provider takes no histograms.
type stubborn struct{ metricnoop.MeterProvider }

func (stubborn) Meter(string, ...metric.MeterOption) metric.Meter { return stubbornMeter{} }

type stubbornMeter struct{ metricnoop.Meter }

var errStubborn = errors.New("no histograms here")

func (stubbornMeter) Float64Histogram(string, ...metric.Float64HistogramOption) (metric.Float64Histogram, error) {
	return nil, errStubborn
}

func TestAProviderThatRefusesAnInstrumentIsAnError(t *testing.T) {
	_, err := New(&Options{MeterProvider: stubborn{}})
	require.ErrorIs(t, err, errStubborn)
	require.ErrorContains(t, err, "electionotel: ")
}

// BenchmarkTelemetry shows what telemetry costs where nobody takes it: a campaign, its term and
// the release, on a store that costs next to nothing.
func BenchmarkTelemetry(b *testing.B) {
	for name, hooks := range map[string]*election.Hooks{"none": nil, "noop": silent(b).Hooks()} {
		b.Run(name, func(b *testing.B) {
			c, err := election.New(memkv.New(), "billing", &election.Options{ID: "a", NoHeir: true, Hooks: hooks})
			require.NoError(b, err)
			for b.Loop() {
				term, err := c.Campaign(b.Context())
				require.NoError(b, err)
				require.NoError(b, term.Resign(b.Context()))
			}
		})
	}
}

// BenchmarkObserve shows what a collection costs with ten thousand elections, beside what the
// SDK does.
func BenchmarkObserve(b *testing.B) {
	const crowd = 10_000
	for name, group := range map[string]func(string) string{
		"each":  func(name string) string { return name },
		"group": func(string) string { return "all" },
	} {
		b.Run(name, func(b *testing.B) {
			tell := silent(b)
			tell.group = group
			all, store := make([]*election.Candidate, crowd), memkv.New()
			for i := range all {
				all[i] = newCandidate(b, store, fmt.Sprint("billing-", i), "a", tell)
				tell.hooks.CampaignStart(b.Context(), election.CampaignStartInfo{HookInfo: election.HookInfo{Candidate: all[i]}})
			}
			for b.Loop() {
				require.NoError(b, tell.observe(b.Context(), metricnoop.Observer{}))
			}
			runtime.KeepAlive(all)
		})
	}
}
