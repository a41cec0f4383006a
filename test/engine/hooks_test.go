package engine_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv/kvfault"
)

// A chronicle has what hooks were told.
type chronicle struct {
	mu sync.Mutex
	entries
}

// entries are the calls of hooks.
type entries struct {
	lines     []string
	of        []*election.Candidate
	refreshes []election.RefreshDoneInfo
	ends      []election.TermDoneInfo
	releases  []election.ReleaseDoneInfo
	campaigns []election.CampaignDoneInfo
	stores    []election.StoreDoneInfo
}

// soFar returns the calls until now.
func (c *chronicle) soFar() entries {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entries
}

// text returns those that are no samples.
func (c *chronicle) text() string { return strings.Join(c.soFar().lines, ", ") }

// add writes a call down, and keeps what it was told.
func add[I any](c *chronicle, kept *[]I, info I, of *election.Candidate, line string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	*kept = append(*kept, info)
	c.of = append(c.of, of)
	if line != "" {
		c.lines = append(c.lines, fmt.Sprintf(line, args...))
	}
}

// hooks returns hooks that write all down.
func (c *chronicle) hooks() *election.Hooks {
	return &election.Hooks{
		RoleChange: func(_ context.Context, i election.RoleChangeInfo) {
			add(c, &[]election.RoleChangeInfo{}, i, i.Candidate, "%s > %s", i.From, i.To)
		},
		CampaignStart: func(_ context.Context, i election.CampaignStartInfo) {
			add(c, &[]election.CampaignStartInfo{}, i, i.Candidate, "campaign")
		},
		CampaignDone: func(_ context.Context, i election.CampaignDoneInfo) {
			add(c, &c.campaigns, i, i.Candidate, "campaign done %d", i.Token)
		},
		TermStart: func(_ context.Context, i election.TermStartInfo) {
			add(c, &[]election.TermStartInfo{}, i, i.Candidate, "term %d", i.Token)
		},
		TermDone: func(_ context.Context, i election.TermDoneInfo) {
			add(c, &c.ends, i, i.Candidate, "term %d %s", i.Token, i.Reason)
		},
		RefreshDone: func(_ context.Context, i election.RefreshDoneInfo) { add(c, &c.refreshes, i, i.Candidate, "") },
		ReleaseDone: func(_ context.Context, i election.ReleaseDoneInfo) {
			add(c, &c.releases, i, i.Candidate, "released %d %s", i.Token, i.Release)
		},
		StoreDone: func(_ context.Context, i election.StoreDoneInfo) { add(c, &c.stores, i, i.Candidate, "") },
		Dropped: func(_ context.Context, i election.DroppedInfo) {
			add(c, &[]election.DroppedInfo{}, i, nil, "dropped %d", i.Calls)
		},
	}
}

// asked returns the operations that the store was asked for, with their outcomes.
func (c *chronicle) asked() (all []string) {
	for _, s := range c.soFar().stores {
		all = append(all, fmt.Sprintf("%s %s %s", s.Op, s.Safe, s.Outcome))
	}
	return all
}

func TestHooksAreToldTheLifeOfATermInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c chronicle
		type key struct{}
		hooks := c.hooks()
		start := hooks.TermStart
		hooks.TermStart = func(ctx context.Context, i election.TermStartInfo) {
			require.Equal(t, "of Run", ctx.Value(key{}))
			require.NoError(t, ctx.Err())
			start(ctx, i)
		}
		a, err := election.New(memkv.New(), "billing", &election.Options{ID: "a", TTL: ttl, NoHeir: true, Hooks: hooks})
		require.NoError(t, err)
		began := time.Now()
		var token uint64
		require.NoError(t, a.Run(context.WithValue(t.Context(), key{}, "of Run"), func(_ context.Context, term *election.Term) error {
			token = term.Token()
			time.Sleep(ttl)
			return nil
		}))
		require.Equal(t, fmt.Sprintf("campaign, idle > candidate, candidate > leader, campaign done %d, term %d, leader > idle, term %d finished, released %d freed",
			token, token, token, token), c.text(), "all of it when Run has returned")
		for _, of := range c.soFar().of {
			require.Same(t, a, of)
		}

		require.Len(t, c.soFar().refreshes, 3, "in a TTL")
		for _, r := range c.soFar().refreshes {
			require.Equal(t, election.OutcomeOK, r.Outcome)
			require.Equal(t, token, r.Token)
			require.InDelta(t, 6*time.Second, r.Left, float64(time.Second/5), "of nine seconds, after a third of that")
		}
		require.Equal(t, ttl, c.soFar().ends[0].Took)
		require.Equal(t, ttl, c.soFar().ends[0].Time.Sub(began))
		require.ErrorIs(t, c.soFar().ends[0].Err, election.ErrResigned)
		require.Zero(t, c.soFar().releases[0].Drain, "the work stopped first")
		require.Equal(t, "create leader ok, refresh leader ok, refresh leader ok, refresh leader ok, delete leader ok", strings.Join(c.asked(), ", "))
	})
}

func TestACampaignThatIsGivenUpHasBeenToldWhenItReturns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c chronicle
		hooks := c.hooks()
		done := hooks.CampaignDone
		hooks.CampaignDone = func(ctx context.Context, i election.CampaignDoneInfo) {
			time.Sleep(time.Second / 2)
			done(ctx, i)
		}
		b, store := newBallot(t), memkv.New()
		b.run(b.candidate(store, "a"), "a")
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), ttl)
		defer cancel()
		_, err := b.candidate(store, "b", func(o *election.Options) { o.Hooks = hooks }).Campaign(ctx)
		require.ErrorIs(t, err, election.ErrHeld)
		require.Len(t, c.soFar().campaigns, 1)
		require.ErrorIs(t, c.soFar().campaigns[0].Err, context.DeadlineExceeded)
	})
}

func TestHooksAreToldHowTrustRunsOutAndHowLongTheWorkGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c chronicle
		hooks := c.hooks()
		end := hooks.TermDone
		hooks.TermDone = func(ctx context.Context, i election.TermDoneInfo) {
			require.NoError(t, ctx.Err(), "a context for what a hook does")
			end(ctx, i)
		}
		b, faults := newBallot(t), kvfault.Wrap(memkv.New())
		faults.On(kvfault.Delete).DelayReplies(time.Second)
		stop := b.runWith(b.candidate(faults.Store, "a", func(o *election.Options) { o.Hooks, o.NoHeir = hooks, true }), "a",
			func(ctx context.Context, _ *election.Term) error {
				<-ctx.Done()
				time.Sleep(2 * time.Second)
				return nil
			})
		synctest.Wait()
		faults.On(kvfault.Refresh).DropRequests()
		time.Sleep(ttl * 95 / 100)
		faults.On(kvfault.Refresh).Heal()
		time.Sleep(ttl)
		synctest.Wait()
		require.NotEmpty(t, c.soFar().refreshes)
		last := 9 * time.Second
		for _, r := range c.soFar().refreshes[:2] {
			require.Equal(t, election.OutcomeUnclear, r.Outcome)
			require.ErrorIs(t, r.Err, context.DeadlineExceeded)
			require.Less(t, r.Left, last, "trust runs out")
			last = r.Left
		}
		require.Equal(t, election.ReasonExpired, c.soFar().ends[0].Reason)
		require.ErrorIs(t, c.soFar().ends[0].Err, election.ErrLost)
		require.Equal(t, ttl*9/10, c.soFar().ends[0].Took)
		require.Equal(t, 2*time.Second, c.soFar().releases[0].Drain)
		require.Error(t, stop())
		require.Len(t, c.soFar().ends, 2, "it was elected again")
		require.Equal(t, election.ReasonStopped, c.soFar().ends[1].Reason)
		require.Equal(t, 2*time.Second, c.soFar().releases[1].Drain, "from the end of Run's context")
		require.Equal(t, time.Second, c.soFar().releases[1].Took)
	})
}

func TestHooksAreToldToWhomTheSafeWasHandedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ofA, ofB chronicle
		b, store := newBallot(t), memkv.New()
		stopA := b.run(b.candidate(store, "a", firstCome, func(o *election.Options) { o.Hooks = ofA.hooks() }), "a")
		time.Sleep(ttl)
		b.run(b.candidate(store, "b", firstCome, func(o *election.Options) { o.Hooks = ofB.hooks() }), "b")
		time.Sleep(ttl)
		require.Contains(t, ofB.text(), "candidate > heir")
		require.Error(t, stopA())
		time.Sleep(ttl / 10)
		synctest.Wait()
		require.Equal(t, "a b", b.leaders())
		r := ofA.soFar().releases[0]
		require.Equal(t, election.ReleaseHandedOver, r.Release)
		require.Equal(t, "b", r.Heir)
		require.Equal(t, b.last().Token(), r.HeirToken)
		require.Equal(t, b.last().Token(), ofB.soFar().campaigns[0].Token)
	})
}

func TestHooksAreToldForWhichCampaignTheStoreWasAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ofA, ofB, ofC chronicle
		b, store := newBallot(t), memkv.New()
		with := func(c *chronicle) func(*election.Options) {
			return func(o *election.Options) { o.Succession, o.Hooks = election.FirstCome, c.hooks() }
		}
		b.run(b.candidate(store, "a", with(&ofA)), "a")
		synctest.Wait()
		b.run(b.candidate(store, "b", with(&ofB)), "b")
		time.Sleep(ttl)
		_, err := b.candidate(store, "c", with(&ofC)).TryCampaign(t.Context())
		require.ErrorIs(t, err, election.ErrHeld)
		require.NoError(t, election.RequestTransfer(t.Context(), store, b.name, "b"))
		synctest.Wait()
		require.Equal(t, "a b", b.leaders())
		for line, c := range map[string]*chronicle{
			"get leader ok":       &ofC, // who holds the safe
			"displace heir ok":    &ofA, // the call of an heir
			"publish request ok":  &ofA, // the answer to a request
			"hand_over leader ok": &ofA,
		} {
			i := slices.Index(c.asked(), line)
			require.GreaterOrEqual(t, i, 0, "%s: %s", line, c.asked())
			require.Equal(t, c.soFar().campaigns[0].Campaign, c.soFar().stores[i].Campaign, line)
			require.NotZero(t, c.soFar().stores[i].Campaign)
		}
	})
}

func TestHooksAreToldWhyATermHasEnded(t *testing.T) {
	for reason, end := range map[election.Reason]func(t *testing.T, p *process){
		election.ReasonResigned: func(t *testing.T, p *process) { require.NoError(t, p.last().Resign(t.Context())) },
		election.ReasonAsked: func(t *testing.T, p *process) {
			require.NoError(t, election.RequestResign(t.Context(), p.store, p.name))
		},
		election.ReasonTaken:     func(_ *testing.T, p *process) { p.store.Put(p.name, "mine") },
		election.ReasonUnhealthy: func(_ *testing.T, p *process) { p.sick.Store(true) },
		election.ReasonStopped:   func(_ *testing.T, p *process) { _ = p.stop() },
		election.ReasonGaveWay:   func(_ *testing.T, _ *process) { time.Sleep(9 * ttl) },
	} {
		t.Run(string(reason), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var c chronicle
				p := newProcess(t, c.hooks(), reason == election.ReasonGaveWay)
				time.Sleep(ttl)
				synctest.Wait()
				require.Empty(t, c.soFar().ends)
				end(t, p)
				time.Sleep(ttl)
				synctest.Wait()
				require.NotEmpty(t, c.soFar().ends)
				require.Equal(t, reason, c.soFar().ends[0].Reason)
				require.Equal(t, reason, c.soFar().releases[0].Reason)
			})
		})
	}
}

func TestARoleOfAnEndedTermDoesNotCoverThatOfTheNext(t *testing.T) {
	for range 200 {
		var c chronicle
		store := memkv.New()
		a, err := election.New(store, "billing", &election.Options{ID: "a", TTL: time.Minute, NoHeir: true, Hooks: c.hooks()})
		require.NoError(t, err)
		for range 3 {
			term, err := a.Campaign(t.Context())
			require.NoError(t, err)
			var crowd sync.WaitGroup
			for range 4 {
				crowd.Go(func() { _ = term.Resign(t.Context()) })
			}
			crowd.Wait()
		}
		lines := strings.Split(c.text(), ", ")
		require.Len(t, lines, 3*8)
		for i, want := range []string{"campaign", "idle > candidate", "candidate > leader", "campaign done", "term", "leader > idle", "term", "released"} {
			for term := range 3 {
				require.Contains(t, lines[8*term+i], want, lines)
			}
		}
	}
}

func TestHooksThatBlockDelayNothingAndAreToldWhatWasDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const crowd = 10
		var c chronicle
		hooks, freed := c.hooks(), make(chan struct{})
		hooks.CampaignStart = func(context.Context, election.CampaignStartInfo) { <-freed }
		store := memkv.New()
		var stops []func() error
		for i := range crowd {
			of := &ballot{t: t, name: fmt.Sprint("billing-", i)}
			stops = append(stops, of.run(of.candidate(store, "a", func(o *election.Options) {
				o.Hooks, o.NoHeir, o.Logger = hooks, true, nil
			}), "a"))
			defer func() { require.Equal(t, "a", of.leaders()) }()
		}
		time.Sleep(1200 * ttl) // two samples for each refresh
		stopping := time.Now()
		require.ErrorIs(t, stops[0](), context.Canceled)
		require.Equal(t, time.Second, time.Since(stopping), "a return waits for a while, and no longer")
		close(freed)
		for _, stop := range stops[1:] {
			require.ErrorIs(t, stop(), context.Canceled)
		}
		require.Contains(t, c.text(), "dropped ")
		require.Equal(t, crowd, strings.Count(c.text(), "freed"), "samples are dropped, and nothing else")
		require.Equal(t, crowd, strings.Count(c.text(), "candidate > leader"))
	})
}

func TestEveryHookIsJoined(t *testing.T) {
	var calls []string
	record := func(who string) *election.Hooks {
		h := &election.Hooks{}
		v := reflect.ValueOf(h).Elem()
		for f, field := range v.Fields() {
			if !f.IsExported() {
				continue
			}
			field.Set(reflect.MakeFunc(f.Type, func([]reflect.Value) []reflect.Value {
				calls = append(calls, f.Name+" "+who)
				return nil
			}))
		}
		return h
	}
	joined := reflect.ValueOf(election.JoinHooks(record("first"), nil, &election.Hooks{}, record("second"))).Elem()
	for f, field := range joined.Fields() {
		if !f.IsExported() {
			continue
		}
		calls = nil
		field.Call([]reflect.Value{reflect.ValueOf(t.Context()), reflect.Zero(f.Type.In(1))})
		require.Equal(t, []string{f.Name + " first", f.Name + " second"}, calls)
	}
}

func TestACandidateSaysHowLongALeaderKeepsOthersOutAndItsWorkMayTakeToStop(t *testing.T) {
	for margin, want := range map[time.Duration]time.Duration{0: time.Second, 3 * time.Second: 3 * time.Second} {
		c, err := election.New(memkv.New(), "pace", &election.Options{TTL: 10 * time.Second, Margin: margin})
		require.NoError(t, err)
		require.Equal(t, 10*time.Second, c.TTL())
		require.Equal(t, want, c.Margin())
	}
}

func TestAStatusIsNeverStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, faults := newBallot(t), kvfault.Wrap(memkv.New())
		a := b.candidate(faults.Store, "a", firstCome)
		require.Equal(t, election.Status{Role: election.RoleIdle}, a.Status())
		b.runWith(a, "a", func(ctx context.Context, _ *election.Term) error {
			<-ctx.Done()
			time.Sleep(ttl)
			return nil
		})
		synctest.Wait()
		term := b.last()
		now := a.Status()
		require.InDelta(t, ttl*9/10, now.Remaining, float64(ttl/10), "the boot clock goes on meanwhile")
		require.LessOrEqual(t, now.Remaining, ttl*9/10)
		now.Remaining = 0
		require.Equal(t, election.Status{Role: election.RoleLeader, Token: term.Token(), Contact: contact()}, now)
		heard := contact()
		h := b.candidate(faults.Store, "b", firstCome)
		b.run(h, "b")
		synctest.Wait()
		require.Equal(t, election.RoleHeir, h.Status().Role)
		faults.On(kvfault.Refresh).DropRequests()
		faults.On(kvfault.Watch).Fail(errors.New("cut off"))
		time.Sleep(ttl*9/10 - 1)
		require.Equal(t, time.Duration(1), a.Status().Remaining)
		require.Equal(t, time.Duration(1), term.Remaining())
		require.Equal(t, heard, a.Status().Contact)
		time.Sleep(1)
		require.Equal(t, election.RoleIdle, a.Status().Role, "trust is over at that moment, whatever the timers do")
		require.Zero(t, a.Status().Token)
		require.Zero(t, term.Remaining())
		faults.On(kvfault.Refresh).Heal()
		faults.On(kvfault.Watch).Heal()
	})
}

// contact returns the present moment as a Status tells it.
func contact() time.Time { return time.UnixMilli(time.Now().UnixMilli()) }

func TestAStatusIsNoLeadersWhileTheElectionIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memkv.New()
		hold := func(o *election.Options) { o.Hold = time.Minute }
		b := newBallot(t)
		require.NoError(t, b.candidate(store, "a", hold).Run(t.Context(), func(context.Context, *election.Term) error { return nil }))
		late := b.candidate(store, "b", hold)
		b.run(late, "b")
		time.Sleep(time.Second)
		require.Equal(t, election.RoleCandidate, late.Status().Role)
		require.False(t, late.IsLeader())
		time.Sleep(2 * time.Minute)
		require.Equal(t, election.RoleLeader, late.Status().Role)
		require.True(t, late.IsLeader())
	})
}

// A process runs a candidate called a.
type process struct {
	*ballot
	store *memkv.Store
	sick  atomic.Bool
	stop  func() error
}

// newProcess returns one, with a candidate of higher rank that comes later if it is to give way.
func newProcess(t *testing.T, hooks *election.Hooks, givesWay bool) *process {
	p := &process{ballot: newBallot(t), store: memkv.New()}
	p.stop = p.run(p.candidate(p.store, "a", func(o *election.Options) {
		o.Succession, o.Hooks = election.ByRank, hooks
		o.Health = func(context.Context) error {
			if p.sick.Load() {
				return errors.New("sick")
			}
			return nil
		}
	}), "a")
	if givesWay {
		time.Sleep(ttl / 2)
		p.run(p.candidate(p.store, "b", func(o *election.Options) { o.Succession, o.Rank = election.ByRank, 1 }), "b")
	}
	return p
}

// BenchmarkTerms shows what a term costs with a history behind it.
func BenchmarkTerms(b *testing.B) {
	for name, noHeir := range map[string]bool{"with history": false, "without": true} {
		b.Run(name, func(b *testing.B) {
			c, err := election.New(memkv.New(), "billing", &election.Options{ID: "a", NoHeir: noHeir})
			require.NoError(b, err)
			b.ReportAllocs()
			for b.Loop() {
				term, err := c.Campaign(b.Context())
				require.NoError(b, err)
				require.NoError(b, term.Resign(b.Context()))
			}
		})
	}
}

// BenchmarkHooks shows what hooks cost: a campaign, its term and the release, on a store that
// costs next to nothing.
func BenchmarkHooks(b *testing.B) {
	count := 0
	for name, hooks := range map[string]*election.Hooks{"none": nil, "all": {
		RoleChange:    func(context.Context, election.RoleChangeInfo) { count++ },
		CampaignStart: func(context.Context, election.CampaignStartInfo) { count++ },
		CampaignDone:  func(context.Context, election.CampaignDoneInfo) { count++ },
		TermStart:     func(context.Context, election.TermStartInfo) { count++ },
		TermDone:      func(context.Context, election.TermDoneInfo) { count++ },
		RefreshDone:   func(context.Context, election.RefreshDoneInfo) { count++ },
		ReleaseDone:   func(context.Context, election.ReleaseDoneInfo) { count++ },
		StoreDone:     func(context.Context, election.StoreDoneInfo) { count++ },
	}} {
		b.Run(name, func(b *testing.B) {
			c, err := election.New(memkv.New(), "billing", &election.Options{ID: "a", NoHeir: true, Hooks: hooks})
			require.NoError(b, err)
			b.ReportAllocs()
			for b.Loop() {
				term, err := c.Campaign(b.Context())
				require.NoError(b, err)
				require.NoError(b, term.Resign(b.Context()))
			}
		})
	}
}
