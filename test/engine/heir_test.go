package engine_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/internal/views"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvfault"
)

// byRank makes candidates stand by rank, with this one.
func byRank(rank int) func(*election.Options) {
	return func(o *election.Options) { o.Succession, o.Rank = election.ByRank, rank }
}

// firstCome makes candidates stand with an heir whom nobody displaces.
func firstCome(o *election.Options) { o.Succession = election.FirstCome }

// noHeir makes candidates stand without one.
func noHeir(o *election.Options) { o.NoHeir = true }

// A twofold link has faults of its own for the heir's safe.
type twofold struct {
	*kvfault.Link // to the leader's safe
	heirs         *kvfault.Link
	Store         kv.Store // over both
}

func twice(store kv.Store) twofold {
	leaders, heirs := kvfault.Wrap(store), kvfault.Wrap(store)
	return twofold{leaders, heirs, views.Over(leaders.Store, apart{leaders.Store, heirs.Store, isHeirs})}
}

func isHeirs(name string) bool { return strings.HasSuffix(name, ":heir") }

// apart is a store in which some safes are another's.
type apart struct {
	kv.Store
	another kv.Store
	its     func(name string) bool
}

func (s apart) of(name string) kv.Store {
	if s.its(name) {
		return s.another
	}
	return s.Store
}

func (s apart) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	return s.of(name).Create(ctx, name, rec)
}

func (s apart) Swap(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
	return s.of(name).Swap(ctx, name, old, next)
}

func (s apart) Refresh(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	return s.of(name).Refresh(ctx, name, rec)
}

func (s apart) Delete(ctx context.Context, name string, rec kv.Record) error {
	return s.of(name).Delete(ctx, name, rec)
}

func (s apart) Get(ctx context.Context, name string) (kv.Record, error) {
	return s.of(name).Get(ctx, name)
}

func (s apart) Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	return s.of(name).Watch(ctx, name)
}

// requestsTo returns how many there were.
func requestsTo(s *kvfault.Link) (n int) {
	for op := kvfault.Create; op <= kvfault.HandOver; op++ {
		n += s.Calls(op)
	}
	return n
}

// A pair is a leader, a, whose heir is b.
type pair struct {
	*ballot
	store        *memkv.Store
	faults       twofold // of the heir
	leader       *election.Term
	stopA, stopB func() error
}

func newPair(t *testing.T, change ...func(*election.Options)) *pair {
	p := &pair{ballot: newBallot(t), store: memkv.New()}
	p.faults = twice(p.store)
	change = append([]func(*election.Options){firstCome}, change...)
	p.stopA = p.run(p.candidate(p.store, "a", change...), "a")
	time.Sleep(ttl)
	p.leader = p.last()
	p.stopB = p.run(p.candidate(p.faults.Store, "b", change...), "b")
	time.Sleep(ttl)
	p.requireHeir("b")
	return p
}

func (p *pair) requireHeir(id string) {
	p.t.Helper()
	heir, err := election.CurrentHeir(p.t.Context(), p.store, p.name)
	require.NoError(p.t, err)
	require.Equal(p.t, id, heir.ID)
}

// states are what a watch of the leader's safe shows until stop is called.
func (p *pair) states() (stop func() []string) {
	ctx, cancel := context.WithCancel(p.t.Context())
	done := make(chan []string)
	go func() {
		var seen []string
		for leader, err := range election.Watch(ctx, p.store, p.name) {
			switch {
			case errors.Is(err, election.ErrNoLeader):
				seen = append(seen, "vacant")
			case err == nil:
				seen = append(seen, leader.ID)
			}
		}
		done <- seen
	}()
	synctest.Wait()
	return func() []string {
		synctest.Wait()
		cancel()
		return <-done
	}
}

func TestTheSafeIsNeverEmptyBetweenALeaderAndItsHeir(t *testing.T) {
	for name, leave := range map[string]func(p *pair){
		"the program ends":   func(p *pair) { require.ErrorIs(p.t, p.stopA(), context.Canceled) },
		"the leader resigns": func(p *pair) { require.NoError(p.t, p.leader.Resign(p.t.Context())) },
		"the leader transfers": func(p *pair) {
			require.NoError(p.t, p.leader.Transfer(p.t.Context(), "b"))
		},
		"the leader is asked to resign": func(p *pair) {
			require.NoError(p.t, election.RequestResign(p.t.Context(), p.store, p.name))
		},
		"the leader is asked to transfer": func(p *pair) {
			require.NoError(p.t, election.RequestTransfer(p.t.Context(), p.store, p.name, "b"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPair(t)
				states := p.states()
				leave(p)
				require.Equal(t, []string{"a", "b"}, states())
				require.Equal(t, "a b", p.leaders())
				require.Equal(t, "at b", leaderOf(t, p.store, p.name).Value)
			})
		})
	}
}

func leaderOf(t *testing.T, store kv.Store, name string) election.Leader {
	t.Helper()
	leader, err := election.Current(t.Context(), store, name)
	require.NoError(t, err)
	return leader
}

// Invariant 6: released means stopped.
func TestTheSafeIsHandedOverWhenTheWorkHasReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		stopped := make(chan struct{})
		b.runWith(b.candidate(store, "a", firstCome), "a", func(ctx context.Context, _ *election.Term) error {
			<-ctx.Done()
			<-stopped
			return nil
		})
		time.Sleep(ttl)
		b.run(b.candidate(store, "b", firstCome), "b")
		time.Sleep(ttl)
		require.NoError(t, b.last().Transfer(t.Context(), "b"))
		time.Sleep(3 * ttl)
		require.Equal(t, "a", leaderOf(t, store, b.name).ID, "its work goes on")
		require.Equal(t, "a", b.leaders())
		close(stopped)
		synctest.Wait()
		require.Equal(t, "a b", b.leaders())
	})
}

// Invariant 2: trust is counted from the send, of the refresh that found the safe
// handed over.
func TestTrustInASafeThatWasHandedOverIsCountedFromTheSendOfARefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		p.faults.On(kvfault.Refresh).DelayReplies(ttl / 5)
		sent := time.Now()
		require.NoError(t, p.leader.Resign(t.Context()))
		time.Sleep(ttl / 4)
		require.Equal(t, "a b", p.leaders())
		require.Equal(t, sent.Add(ttl*9/10), p.last().Until())
		p.faults.Heal()
	})
}

// What the store says of a record whose lease may have been broken is no proof.
func TestAnHeirWhoseOwnTermWasBrokenDoesNotLeadByWhatWasHandedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		for refreshed := p.faults.heirs.Calls(kvfault.Refresh); refreshed == p.faults.heirs.Calls(kvfault.Refresh); {
			time.Sleep(time.Millisecond)
		}
		synctest.Wait() // until that one is answered
		p.faults.On(kvfault.Refresh).Hang()
		p.faults.heirs.On(kvfault.Refresh).DropRequests()
		time.Sleep(ttl * 8 / 10) // trust in the heir's record is about to run out
		require.NoError(t, p.leader.Resign(t.Context()))
		synctest.Wait()
		handed := leaderOf(t, p.store, p.name)
		require.Equal(t, "b", handed.ID)
		time.Sleep(ttl / 5)
		p.faults.Heal() // and the store says that all is well
		synctest.Wait()
		p.faults.heirs.Heal()
		time.Sleep(3 * ttl)
		require.NotEmpty(t, leaderOf(t, p.store, p.name).ID, "somebody leads in the end")
		for _, term := range p.all() {
			require.NotEqual(t, handed.Token, term.Token())
		}
	})
}

// Invariant 5: after an answer that was lost, the safe may have been handed over.
func TestAHandOverWhoseAnswerIsLostIsOneHandOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBallot(t)
		store := memkv.New()
		faults := kvfault.Wrap(store)
		stop := b.succession(faults.Store, store)
		faults.On(kvfault.HandOver).Next(1).FailReplies(errStore)
		require.ErrorIs(t, stop(), context.Canceled)
		synctest.Wait()
		require.Equal(t, "a b", b.leaders())
		require.Positive(t, faults.Calls(kvfault.HandOver))
		time.Sleep(ttl)
		require.NoError(t, b.last().Err())
	})
}

func TestAHandOverThatDoesNotArriveEmptiesTheSafe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBallot(t)
		store := memkv.New()
		faults := twice(store)
		stop := b.succession(faults.Store, store)
		faults.On(kvfault.HandOver).Fail(kv.ErrInvalid)
		require.ErrorIs(t, stop(), context.Canceled)
		synctest.Wait()
		require.Equal(t, "a b", b.leaders())
	})
}

func TestOnlyTheHeirWatchesTheLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		faults := twice(p.store)
		p.run(p.candidate(faults.Store, "c", firstCome), "c")
		time.Sleep(100 * ttl)
		require.Equal(t, 1, requestsTo(faults.Link), "it tries for the leader's safe once")
		require.Equal(t, 2, requestsTo(faults.heirs), "and for the heir's, which it watches")
	})
}

func TestATransferMakesTheCandidateTheHeirFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		p.run(p.candidate(p.store, "c", firstCome), "c")
		time.Sleep(ttl)
		p.requireHeir("b")
		states := p.states()
		require.NoError(t, p.leader.Transfer(t.Context(), "c"))
		require.Equal(t, []string{"a", "c"}, states())
		require.Equal(t, "a c", p.leaders())
	})
}

func TestATransferToACandidateThatDoesNotStandChangesNothing(t *testing.T) {
	for name, do := range map[string]func(p *pair) error{
		"by the leader": func(p *pair) error { return p.leader.Transfer(p.t.Context(), "c") },
		"by request":    func(p *pair) error { return election.RequestTransfer(p.t.Context(), p.store, p.name, "c") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPair(t, byRank(1))
				began := time.Now()
				err := do(p)
				require.ErrorIs(t, err, election.ErrNoHeir)
				require.ErrorContains(t, err, `"c" did not answer`)
				require.LessOrEqual(t, time.Since(began), ttl)
				require.NoError(t, p.leader.Err())
				require.Equal(t, "a", p.leaders())
				time.Sleep(ttl)
				p.requireHeir("b")
			})
		})
	}
}

func TestATransferRefusesWhatCannotBeMeant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		require.ErrorContains(t, p.leader.Transfer(t.Context(), ""), "ID is empty")
		require.ErrorContains(t, p.leader.Transfer(t.Context(), "a"), "the leader itself")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, p.leader.Transfer(ctx, "c"), context.Canceled)
		require.NoError(t, p.leader.Err())
		require.NoError(t, p.leader.Resign(t.Context()))
		require.ErrorIs(t, p.leader.Transfer(t.Context(), "b"), election.ErrResigned)

		b := newBallot(t)
		for _, alone := range []bool{false, true} {
			c := b.candidate(memkv.New(), "a", func(o *election.Options) { o.NoHeir = alone })
			term, err := c.Campaign(t.Context())
			require.NoError(t, err)
			if alone {
				require.ErrorIs(t, term.Transfer(t.Context(), "b"), election.ErrNoSuccession)
				require.ErrorIs(t, term.SetHeirs(t.Context(), "b"), election.ErrNoSuccession)
			}
			require.ErrorContains(t, term.SetHeirs(t.Context(), "b"), map[bool]string{false: "ByList", true: "NoHeir"}[alone])
			require.NoError(t, term.Err())
			require.NoError(t, term.Resign(t.Context()))
		}
	})
}

func TestARequestSaysWhyItIsNotHeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		require.ErrorIs(t, election.RequestResign(t.Context(), store, b.name), election.ErrNoLeader)
		require.ErrorContains(t, election.RequestTransfer(t.Context(), store, b.name, ""), "ID is empty")

		store.Put(b.name, "somebody's lock")
		require.ErrorIs(t, election.RequestResign(t.Context(), store, b.name), election.ErrHeld)
		store.Remove(b.name)

		deaf, err := b.candidate(store, "a").Campaign(t.Context())
		require.NoError(t, err)
		require.ErrorContains(t, election.RequestResign(t.Context(), store, b.name), "no answer within 15s")
		require.NoError(t, deaf.Err())
		require.NoError(t, deaf.Resign(t.Context()))

		plain, err := b.candidate(store, "a", noHeir, func(o *election.Options) { o.Requests = true }).Campaign(t.Context())
		require.NoError(t, err)
		err = election.RequestTransfer(t.Context(), store, b.name, "b")
		require.ErrorIs(t, err, election.ErrNoSuccession)
		require.NotErrorIs(t, err, election.ErrNoHeir)
		require.NoError(t, election.RequestTransfer(t.Context(), store, b.name, "a"), "it leads already")
		require.NoError(t, plain.Err())

		// It ends the term, and waits for the work.
		ctx, cancel := context.WithTimeout(t.Context(), ttl/2)
		defer cancel()
		err = election.RequestResign(ctx, store, b.name)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "its work has not stopped yet")
		require.ErrorIs(t, plain.Err(), election.ErrResigned)
		require.NoError(t, plain.Resign(t.Context()))
		_, err = store.Get(t.Context(), b.name+":request")
		require.ErrorIs(t, err, kv.ErrVacant, "nothing is left")
	})
}

func TestTwoRequestsAtATimeAreOneTooMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		term, err := b.candidate(store, "a").Campaign(t.Context())
		require.NoError(t, err)
		first := make(chan error)
		go func() { first <- election.RequestResign(t.Context(), store, b.name) }()
		synctest.Wait()
		require.ErrorContains(t, election.RequestResign(t.Context(), store, b.name), "another request is under way")
		require.ErrorContains(t, <-first, "no answer")
		require.NoError(t, term.Resign(t.Context()))
	})
}

func TestACandidateTellsOfItsRoles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var roles []string
		tell := func(o *election.Options) {
			o.OnRole = func(r election.Role) { roles = append(roles, string(r)) }
		}
		p := newPair(t)
		stop := p.run(p.candidate(p.store, "c", byRank(1), tell), "c")
		time.Sleep(ttl)
		require.ErrorIs(t, p.stopA(), context.Canceled)
		time.Sleep(ttl)
		require.ErrorIs(t, p.stopB(), context.Canceled)
		time.Sleep(ttl)
		require.ErrorIs(t, stop(), context.Canceled)
		require.Equal(t, "candidate heir leader idle", strings.Join(roles, " "))
	})
}

func TestNewRefusesASuccessionThatCannotBeMeant(t *testing.T) {
	for _, c := range []struct {
		name string
		opts election.Options
		says string
	}{
		{"a:heir", election.Options{}, `name "a:heir" ends with ":heir"`},
		{":request", election.Options{}, `ends with ":request"`},
		{"a", election.Options{Rank: -1}, "rank -1 is below zero: use Watch"},
		{"a", election.Options{Stability: -1}, "stability -1ns is negative"},
		{"a", election.Options{MaxTerm: -1}, "longest term -1ns is negative"},
		{"a", election.Options{MaxTerm: time.Second}, "use at least 15s"},
		{"a", election.Options{MaxTerm: time.Minute, NoHeir: true}, "a longest term needs an heir"},
		{"a", election.Options{Succession: election.Ring, NoHeir: true}, "leave one of them out"},
		{"a", election.Options{Heirs: []string{"b"}}, "heirs need a Succession"},
		{"a", election.Options{Heirs: []string{"b", "b"}}, `heir "b" is listed twice`},
		{"a", election.Options{Heirs: []string{""}}, "heir is empty"},
		{"a", election.Options{Heirs: make([]string, 65)}, "65 heirs are too many: at most 64"},
	} {
		_, err := election.New(memkv.New(), c.name, &c.opts)
		require.ErrorContains(t, err, c.says)
	}
}

// Nothing spins, whatever order candidates are given.
func TestCandidatesWhoseOrdersContradictEachOtherDoNotSpin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		faults := twice(p.store)
		mad := func(o *election.Options) {
			o.Succession = func(leader, a, b election.Contender) bool { return a.ID != leader.ID }
			o.Stability = time.Hour
		}
		p.run(p.candidate(faults.Store, "c", mad), "c")
		p.run(p.candidate(faults.Store, "d", mad), "d")
		time.Sleep(time.Minute)
		before := faults.heirs.Calls(kvfault.Swap)
		time.Sleep(100 * time.Second)
		require.LessOrEqual(t, faults.heirs.Calls(kvfault.Swap)-before, 100)
		require.Equal(t, "a", p.leaders())
	})
}
