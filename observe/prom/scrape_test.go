package electionprom_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvfault"

	"github.com/electkv/election/observe/prom"
)

const ttl = 10 * time.Second

// A process is one whose metrics are scraped.
type process struct {
	*testing.T
	store    kv.Store
	metrics  *electionprom.Metrics
	registry *prometheus.Registry
	hooks    *election.Hooks
}

func newProcess(t *testing.T, store kv.Store, opts *electionprom.Options) *process {
	p := &process{T: t, store: store, metrics: electionprom.New(opts), registry: prometheus.NewPedanticRegistry()}
	require.NoError(t, p.registry.Register(p.metrics))
	p.hooks = p.metrics.Hooks()
	return p
}

// candidate returns one that is known from its first campaign on.
func (p *process) candidate(name, id string) *election.Candidate { return p.slow(name, id, ttl) }

// slow returns one with another TTL.
func (p *process) slow(name, id string, ttl time.Duration) *election.Candidate {
	c, err := election.New(p.store, name, &election.Options{ID: id, TTL: ttl, Hooks: p.hooks})
	require.NoError(p, err)
	return c
}

// run has a candidate lead, with work that takes a while to stop, until it is told to stop or the
// test is over.
func (p *process) run(c *election.Candidate, drain time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(p.Context())
	var running sync.WaitGroup
	running.Go(func() {
		_ = c.Run(ctx, func(ctx context.Context, _ *election.Term) error {
			<-ctx.Done()
			time.Sleep(drain)
			return nil
		})
	})
	stop = func() {
		cancel()
		running.Wait()
	}
	p.Cleanup(stop)
	return stop
}

// scrape returns the values by name and labels, "election_role{billing,heir}". Those of histograms
// are their counts, and their sums with "_sum".
func (p *process) scrape() map[string]float64 {
	families, err := p.registry.Gather()
	require.NoError(p, err)
	values := make(map[string]float64)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			key := "{" + strings.Join(labels, ",") + "}"
			if h := m.GetHistogram(); h != nil {
				values[f.GetName()+key] = float64(h.GetSampleCount())
				values[f.GetName()+"_sum"+key] = h.GetSampleSum()
				continue
			}
			values[f.GetName()+key] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return values
}

// has requires values of a scrape. Times need not be exact: pauses are drawn.
func (p *process) has(want map[string]float64) {
	p.Helper()
	synctest.Wait()
	got := p.scrape()
	for key, value := range want {
		require.Contains(p, got, key)
		require.InDelta(p, value, got[key], 0.2, key)
	}
}

func TestAScrapeSaysWhatACandidateIsAtThisMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t, memkv.New(), nil)
		other := newProcess(t, p.store, nil)
		require.Equal(t, map[string]float64{"election_hook_calls_dropped_total{}": 0}, p.scrape(), "no candidate is known yet")
		stopOther := other.run(other.candidate("billing", "other"), 0)
		time.Sleep(ttl)
		stop := p.run(p.candidate("billing", "mine"), 0)
		synctest.Wait()
		p.has(map[string]float64{
			"election_elections{billing}":                       1,
			"election_is_leader{billing}":                       0,
			"election_role{billing,heir}":                       1,
			"election_role{billing,candidate}":                  0,
			"election_role{billing,leader}":                     0,
			"election_role{billing,idle}":                       0,
			"election_token{billing}":                           0,
			"election_trust_remaining_seconds{billing}":         0,
			"election_ttl_seconds{billing}":                     10,
			"election_store_contact_timestamp_seconds{billing}": seconds(time.Now()),
			"election_terms_total{billing}":                     0,
		})
		stopOther()
		began := time.Now()
		time.Sleep(time.Second)
		p.has(map[string]float64{
			"election_is_leader{billing}":                       1,
			"election_role{billing,heir}":                       0,
			"election_role{billing,leader}":                     1,
			"election_token{billing}":                           p.token("billing"),
			"election_store_contact_timestamp_seconds{billing}": seconds(began),
			"election_terms_total{billing}":                     1,
			"election_campaign_seconds{billing}":                1,
		})
		require.InDelta(t, 8, p.scrape()["election_trust_remaining_seconds{billing}"], 0.1, "of nine seconds, after one")
		other.has(map[string]float64{
			"election_is_leader{billing}": 0,
			"election_role{billing,idle}": 1,
			"election_token{billing}":     0,
		})
		stop()
		p.has(map[string]float64{
			"election_is_leader{billing}":               0,
			"election_role{billing,leader}":             0,
			"election_role{billing,idle}":               1,
			"election_token{billing}":                   0,
			"election_trust_remaining_seconds{billing}": 0,
		})
		require.Positive(t, p.scrape()["election_store_contact_timestamp_seconds{billing}"])
	})
}

// token returns the token in the safe.
func (p *process) token(name string) float64 {
	rec, err := p.store.Get(p.Context(), name)
	require.NoError(p, err)
	return float64(rec.Token)
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// No hook gets through, and the store does not answer: nobody tells the metrics that the term is
// over.
func TestNobodyIsSaidToLeadWhoseTrustIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults := kvfault.Wrap(memkv.New())
		p := newProcess(t, faults.Store, nil)
		blocked := make(chan struct{})
		blocks := &election.Hooks{TermDone: func(context.Context, election.TermDoneInfo) { <-blocked }}
		p.hooks = election.JoinHooks(blocks, p.hooks)
		p.run(p.candidate("billing", "a"), 0)
		synctest.Wait()
		faults.On().Hang()
		p.Cleanup(faults.Heal)
		time.Sleep(ttl*9/10 - 1)
		p.has(map[string]float64{"election_is_leader{billing}": 1, "election_role{billing,leader}": 1})
		time.Sleep(1)
		p.has(map[string]float64{
			"election_is_leader{billing}":                 0,
			"election_token{billing}":                     0,
			"election_trust_remaining_seconds{billing}":   0,
			"election_role{billing,leader}":               0,
			"election_role{billing,idle}":                 1,
			"election_terms_ended_total{billing,expired}": 0, // the hooks are not there yet
		})
		faults.Heal()
		close(blocked)
		p.has(map[string]float64{"election_terms_ended_total{billing,expired}": 1})
	})
}

func TestCandidatesOfOneElectionAreAddedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t, memkv.New(), nil)
		stop := p.run(p.candidate("billing", "a"), 0)
		time.Sleep(ttl)
		p.run(p.candidate("billing", "b"), 0)
		time.Sleep(ttl)
		p.run(p.candidate("billing", "c"), 0)
		time.Sleep(ttl)
		want := map[string]float64{
			"election_elections{billing}":      1,
			"election_is_leader{billing}":      1,
			"election_role{billing,leader}":    1,
			"election_role{billing,heir}":      1,
			"election_role{billing,candidate}": 1,
			"election_role{billing,idle}":      0,
			"election_token{billing}":          p.token("billing"),
		}
		p.has(want)
		stop()
		time.Sleep(time.Second)
		want["election_role{billing,candidate}"] = 0
		want["election_token{billing}"] = p.token("billing")
		want["election_terms_total{billing}"] = 2
		p.has(want)
	})
}

// It is asked once, though it campaigns again while it leads.
func TestACandidateWithTwoCampaignsIsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t, memkv.New(), nil)
		c := p.candidate("billing", "a")
		p.run(c, 0)
		synctest.Wait()
		p.run(c, 0)
		p.has(map[string]float64{"election_is_leader{billing}": 1, "election_role{billing,leader}": 1})
	})
}

// Calls of hooks may be dropped.
func TestALeaderIsKnownThoughNothingWasToldOfItsCampaign(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t, memkv.New(), nil)
		p.hooks = &election.Hooks{TermStart: p.hooks.TermStart}
		p.run(p.candidate("billing", "a"), 0)
		p.has(map[string]float64{"election_is_leader{billing}": 1})
	})
}

func TestAStoreThatWasNeverHeardIsSaidToBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		faults := kvfault.Wrap(memkv.New())
		faults.On().DropRequests()
		p := newProcess(t, faults.Store, nil)
		p.run(p.candidate("billing", "a"), 0)
		time.Sleep(ttl)
		p.has(map[string]float64{"election_store_contact_timestamp_seconds{billing}": 0, "election_role{billing,candidate}": 1})
		require.Positive(t, p.scrape()["election_store_errors_total{billing,create}"])
	})
}

func TestTheTTLIsThatOfTheLastCampaign(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcess(t, memkv.New(), nil)
		p.run(p.candidate("billing", "a"), 0)()
		p.run(p.slow("billing", "a", 2*ttl), 0)
		p.has(map[string]float64{"election_ttl_seconds{billing}": 2 * ttl.Seconds()})
	})
}
