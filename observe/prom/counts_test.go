package electionprom_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv/kvfault"

	"github.com/electkv/election/observe/prom"
)

// One term is lost, and one stopped, with work that goes on for too long. Between them is one that is
// resigned, with work that stops in time.
func TestCountsAgreeWithWhatHappened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults := kvfault.Wrap(memkv.New())
		p := newProcess(t, faults.Store, nil)
		c := p.candidate("billing", "a")
		faults.On(kvfault.Get).Next(1).Fail(errors.New("cut off"))
		work := make(chan time.Duration)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var running sync.WaitGroup
		t.Cleanup(running.Wait)
		running.Go(func() {
			_ = c.Run(ctx, func(ctx context.Context, term *election.Term) error {
				select {
				case drain := <-work:
					_ = term.Resign(ctx)
					time.Sleep(drain)
				case <-ctx.Done():
					time.Sleep(2 * time.Second) // the margin is one
				}
				return nil
			})
		})
		synctest.Wait()
		time.Sleep(7 * time.Second) // two refreshes, one each three seconds
		faults.On(kvfault.Refresh).DropRequests()
		time.Sleep(10 * time.Second)
		faults.On(kvfault.Refresh).Heal()
		time.Sleep(ttl)
		p.has(map[string]float64{
			"election_terms_total{billing}":                  2,
			"election_terms_ended_total{billing,expired}":    1,
			"election_term_seconds{billing}":                 1,
			"election_term_seconds_sum{billing}":             15, // the trust of the refresh after six
			"election_drain_seconds{billing}":                1,
			"election_drain_seconds_sum{billing}":            2,
			"election_drain_overruns_total{billing,expired}": 1,
			"election_refresh_seconds{billing,unclear}":      2,
			"election_refresh_seconds_sum{billing,unclear}":  6,
			"election_store_errors_total{billing,refresh}":   2,
			"election_refresh_seconds_sum{billing,ok}":       0,
			"election_campaign_seconds{billing}":             2,
			"election_hook_calls_dropped_total{}":            0,
			"election_drain_overruns_total{billing,stopped}": 0,
			"election_terms_ended_total{billing,resigned}":   0,
			"election_store_errors_total{billing,watch}":     0,
			"election_store_errors_total{billing,create}":    0,
		})
		got := p.scrape()
		refreshes := got["election_refresh_seconds{billing,ok}"]
		require.Greater(t, refreshes, 4.0)
		require.InDelta(t, refreshes, got["election_refresh_margin_seconds{billing}"], 0)
		require.InDelta(t, 6, got["election_refresh_margin_seconds_sum{billing}"]/refreshes, 0.2, "two thirds of the trust")
		work <- time.Second / 2
		time.Sleep(ttl)
		stop()
		running.Wait()
		p.has(map[string]float64{
			"election_terms_total{billing}":                   3,
			"election_terms_ended_total{billing,expired}":     1,
			"election_terms_ended_total{billing,resigned}":    1,
			"election_terms_ended_total{billing,stopped}":     1,
			"election_drain_seconds{billing}":                 3,
			"election_drain_seconds_sum{billing}":             2 + 0.5 + 2,
			"election_drain_overruns_total{billing,resigned}": 0,
			"election_drain_overruns_total{billing,stopped}":  1,
		})
	})
}

// The calls that would have said that two campaigns were over were dropped.
func TestCandidatesWhoseEndWasDroppedAreLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t, memkv.New(), nil)
		p.run(p.candidate("billing", "a"), 0)
		for i, id := range []string{"b", "c"} {
			p.hooks.CampaignStart(t.Context(), election.CampaignStartInfo{
				HookInfo: election.HookInfo{Candidate: p.candidate("billing", id), Campaign: uint64(1<<40 + i)},
			})
		}
		p.has(map[string]float64{"election_role{billing,idle}": 2, "election_role{billing,leader}": 1})
		p.hooks.Dropped(t.Context(), election.DroppedInfo{Calls: 2})
		p.has(map[string]float64{"election_role{billing,idle}": 0, "election_role{billing,leader}": 1})
	})
}

func TestMetricsFollowTheConventions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t, memkv.New(), nil)
		stop := p.run(p.candidate("billing", "a"), 0)
		time.Sleep(ttl)
		stop()
		synctest.Wait()
		problems, err := testutil.GatherAndLint(p.registry)
		require.NoError(t, err)
		require.Empty(t, problems)
	})
}

func TestAForgottenElectionLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t, memkv.New(), nil)
		for _, name := range []string{"billing", "mail"} {
			p.run(p.candidate(name, "a"), 0)
		}
		synctest.Wait()
		p.metrics.Forget("billing")
		p.metrics.Forget("another")
		got := p.scrape()
		require.Contains(t, got, "election_is_leader{mail}")
		require.Contains(t, got, "election_term_seconds{mail}")
		for key := range got {
			require.NotContains(t, key, "billing")
		}
		p.run(p.candidate("billing", "b"), 0)
		p.has(map[string]float64{"election_terms_total{billing}": 0, "election_is_leader{billing}": 0})
	})
}

func TestElectionsOfAGroupAreCountedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t, memkv.New(), &electionprom.Options{Group: func(name string) string { return name[:4] }})
		other := newProcess(t, p.store, nil)
		other.run(other.candidate("job-3", "other"), 0)
		synctest.Wait()
		p.run(p.candidate("job-1", "a"), 0)
		time.Sleep(time.Second)
		p.run(p.candidate("job-2", "a"), 0)
		p.run(p.slow("job-3", "a", 2*ttl), 0)
		p.run(p.candidate("lone", "a"), 0)
		time.Sleep(time.Second)
		p.has(map[string]float64{
			"election_elections{job-}":               3,
			"election_is_leader{job-}":               2,
			"election_role{job-,leader}":             2,
			"election_role{job-,heir}":               1,
			"election_terms_total{job-}":             2,
			"election_terms_ended_total{job-,asked}": 0,
			"election_ttl_seconds{job-}":             10,
			"election_elections{lone}":               1,
			"election_token{lone}":                   p.token("lone"),
		})
		got := p.scrape()
		require.NotContains(t, got, "election_token{job-}", "tokens of two elections cannot be compared")
		require.InDelta(t, 7, got["election_trust_remaining_seconds{job-}"], 0.1, "the shortest")
		p.metrics.Forget("job-1")
		p.has(map[string]float64{"election_elections{job-}": 2, "election_is_leader{job-}": 1, "election_terms_total{job-}": 2})
	})
}

func TestAnElectionWithoutACampaignIsIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t, memkv.New(), &electionprom.Options{Group: func(string) string { return "all" }})
		var terms []*election.Term
		for i := range 3 {
			name := fmt.Sprintf("job-%d", i)
			term, err := p.candidate(name, "a").TryCampaign(t.Context())
			require.NoError(t, err)
			terms = append(terms, term)
			_, err = p.candidate(name, "b").TryCampaign(t.Context())
			require.ErrorIs(t, err, election.ErrHeld)
		}
		p.has(map[string]float64{"election_role{all,leader}": 3, "election_role{all,idle}": 0, "election_is_leader{all}": 3})
		for _, term := range terms {
			require.NoError(t, term.Resign(t.Context()))
		}
		heard := seconds(time.Now())
		time.Sleep(ttl)
		p.has(map[string]float64{
			"election_role{all,leader}":                     0,
			"election_role{all,idle}":                       3,
			"election_is_leader{all}":                       0,
			"election_elections{all}":                       3,
			"election_store_contact_timestamp_seconds{all}": heard,
		})
	})
}

// Such a name breaks no scrape, and no hook.
func TestALabelThatIsNoTextIsMended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t, memkv.New(), &electionprom.Options{Group: func(string) string { return "a\xff" }})
		p.run(p.candidate("billing", "a"), 0)
		synctest.Wait()
		p.has(map[string]float64{"election_is_leader{a\uFFFD}": 1})
	})
}

func TestNativeHistogramsAreThereIfTheyAreAskedFor(t *testing.T) {
	for _, native := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p := newProcess(t, memkv.New(), &electionprom.Options{NativeHistograms: native})
			p.run(p.candidate("billing", "a"), 0)
			time.Sleep(ttl)
			synctest.Wait()
			families, err := p.registry.Gather()
			require.NoError(t, err)
			histograms := 0
			for _, f := range families {
				for _, m := range f.GetMetric() {
					if h := m.GetHistogram(); h != nil {
						histograms++
						require.Equal(t, native, h.Schema != nil, f.GetName())
						require.NotEmpty(t, h.GetBucket(), "the fixed ones stay")
					}
				}
			}
			require.Equal(t, 5, histograms)
		})
	}
}

// The hooks, scrapes and Forget come from many goroutines, with the race detector watching.
func TestMetricsMayBeScrapedWhileTheyChange(t *testing.T) {
	p := newProcess(t, memkv.New(), nil)
	var crowd sync.WaitGroup
	for i := range 8 {
		crowd.Go(func() {
			c := p.candidate(fmt.Sprintf("job-%d", i%4), fmt.Sprint(i))
			for range 10 {
				_ = c.TryRun(t.Context(), func(context.Context, *election.Term) error { return nil })
			}
		})
	}
	for i := range 4 {
		crowd.Go(func() {
			for range 10 {
				if _, err := p.registry.Gather(); err != nil {
					t.Error(err)
				}
				if i == 0 {
					p.metrics.Forget("job-0")
				}
			}
		})
	}
	crowd.Wait()
}

func TestDescriptionsAreUniqueAndComplete(t *testing.T) {
	ch := make(chan *prometheus.Desc, 100)
	electionprom.New(nil).Describe(ch)
	close(ch)
	seen := make(map[string]bool)
	for d := range ch {
		require.False(t, seen[d.String()])
		seen[d.String()] = true
	}
	require.Len(t, seen, 17)
}
