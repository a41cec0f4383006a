package engine_test

import (
	"bytes"
	"context"
	"iter"
	"log/slog"
	"strings"
	"sync/atomic"
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

// within waits until there have been these leaders, and fails if that takes longer.
func (b *ballot) within(most time.Duration, leaders string) {
	b.t.Helper()
	for began := time.Now(); b.leaders() != leaders; time.Sleep(ttl / 1000) {
		require.LessOrEqual(b.t, time.Since(began), most, "leaders so far: %s", b.leaders())
	}
}

// requireVacant says that nothing is left in a safe.
func requireVacant(t *testing.T, store kv.Store, name string) {
	t.Helper()
	_, err := store.Get(t.Context(), name)
	require.ErrorIs(t, err, kv.ErrVacant)
}

// lasting has terms of another TTL.
func lasting(d time.Duration) func(*election.Options) {
	return func(o *election.Options) { o.TTL = d }
}

func TestAnHeirWhoseHealthCheckHangsKeepsNobodyOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		released := make(chan struct{})
		defer close(released)
		var hangs atomic.Bool
		p := newPair(t, func(o *election.Options) {
			if o.ID == "b" {
				o.Health = func(context.Context) error { // whatever becomes of its context
					if hangs.Load() {
						<-released
					}
					return nil
				}
			}
		})
		p.run(p.candidate(p.store, "c", firstCome), "c")
		time.Sleep(ttl)
		hangs.Store(true)
		time.Sleep(ttl / 4)
		require.ErrorIs(t, p.stopA(), context.Canceled)
		p.within(5*ttl, "a c")
	})
}

func TestAnHeirThatCannotReachTheLeadersSafeKeepsNobodyOut(t *testing.T) {
	for name, cut := range map[string]func(p *pair){
		"nothing arrives":      func(p *pair) { p.faults.On().DropRequests() },
		"nothing is answered":  func(p *pair) { p.faults.On().DropReplies() },
		"everything is denied": func(p *pair) { p.faults.On().Fail(errStore) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newPair(t)
				p.run(p.candidate(p.store, "c", firstCome), "c")
				time.Sleep(ttl)
				cut(p)
				defer p.faults.Heal()
				require.ErrorIs(t, p.stopA(), context.Canceled)
				p.within(5*ttl, "a c")
			})
		})
	}
}

func TestAnHeirWhoseClaimsAreRefusedForEverKeepsNobodyOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		p.run(p.candidate(p.store, "c", firstCome), "c")
		time.Sleep(ttl)
		p.faults.On(kvfault.Create).Fail(errStore)
		p.store.Remove(p.name)
		require.ErrorIs(t, p.stopA(), context.Canceled)
		p.within(5*ttl, "a c")
	})
}

func TestARequestToTransferToNobodyIsAnsweredWhateverTheTTL(t *testing.T) {
	for _, d := range []time.Duration{5 * time.Second, 15 * time.Second, time.Minute} {
		t.Run(d.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, b := memkv.New(), newBallot(t)
				faults := kvfault.Wrap(store)
				faults.On(kvfault.Create, kvfault.Get, kvfault.Swap).DelayRequests(2 * time.Millisecond)
				faults.On(kvfault.Watch).DelayReplies(2 * time.Millisecond)
				b.run(b.candidate(faults.Store, "a", firstCome, lasting(d)), "a")
				time.Sleep(d)
				err := election.RequestTransfer(t.Context(), store, b.name, "nobody")
				require.ErrorIs(t, err, election.ErrNoHeir)
				require.ErrorContains(t, err, `"nobody" did not answer`)
				requireVacant(t, store, b.name+":request")
				time.Sleep(3 * d)
				require.NoError(t, b.last().Err())
				require.Equal(t, "a", b.leaders())
			})
		})
	}
}

func TestARequestThatWasTakenBackIsNotHeeded(t *testing.T) {
	for name, ask := range map[string]func(ctx context.Context, store kv.Store, name string) error{
		"to resign": election.RequestResign,
		"to transfer": func(ctx context.Context, store kv.Store, name string) error {
			return election.RequestTransfer(ctx, store, name, "nobody")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, b := memkv.New(), newBallot(t)
				faults := twice(store)
				b.run(b.candidate(faults.Store, "a", firstCome, lasting(time.Minute)), "a")
				time.Sleep(time.Minute)
				faults.On(kvfault.Watch).DelayReplies(20 * time.Second)
				calls := faults.heirs.Calls(kvfault.Create)
				require.ErrorContains(t, ask(t.Context(), store, b.name), "no answer within 15s")
				requireVacant(t, store, b.name+":request")
				time.Sleep(3 * time.Minute)
				require.NoError(t, b.last().Err())
				require.Equal(t, "a", b.leaders())
				require.Equal(t, calls, faults.heirs.Calls(kvfault.Create), "nobody is called")
				faults.Heal()
			})
		})
	}
}

func TestATransferThatNobodyWaitsForAnyMoreIsNotMade(t *testing.T) {
	for name, deaf := range map[string]bool{"as the leader is told": false, "though the leader is not told": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, b := memkv.New(), newBallot(t)
				faults := twice(store)
				b.run(b.candidate(faults.Store, "a", firstCome, lasting(time.Minute)), "a")
				time.Sleep(time.Minute)
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				if deaf {
					time.AfterFunc(time.Second, func() { faults.On(kvfault.Watch).DropRequests() })
				}
				require.ErrorIs(t, election.RequestTransfer(ctx, store, b.name, "b"), context.DeadlineExceeded)
				requireVacant(t, store, b.name+":request")
				if !deaf {
					b.run(b.candidate(store, "c", firstCome, lasting(time.Minute)), "c")
					time.Sleep(5 * time.Second)
					heir, err := election.CurrentHeir(t.Context(), store, b.name)
					require.NoError(t, err, "nobody is called any more")
					require.Equal(t, "c", heir.ID)
				}
				b.run(b.candidate(store, "b", firstCome, lasting(time.Minute)), "b")
				time.Sleep(5 * time.Minute)
				require.NoError(t, b.last().Err())
				require.Equal(t, "a", b.leaders())
				faults.Heal()
			})
		})
	}
}

func TestARequestWhoseAnswerIsLostIsHeededAndTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		asker := kvfault.Wrap(p.store)
		asker.On(kvfault.Create).FailReplies(errStore)
		require.NoError(t, election.RequestResign(t.Context(), asker.Store, p.name))
		synctest.Wait()
		require.Equal(t, "a b", p.leaders())
		require.ErrorIs(t, p.leader.Err(), election.ErrResigned)
		requireVacant(t, p.store, p.name+":request")
	})
}

// A loser's first join is carried out late, and its answer is lost.
type loser struct {
	*memkv.Queue
	joined atomic.Bool
}

func (s *loser) Join(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	if s.joined.Swap(true) {
		return s.Queue.Join(ctx, name, rec)
	}
	time.Sleep(100 * time.Millisecond)
	_, _ = s.Queue.Join(ctx, name, rec)
	return kv.Record{}, errStore
}

func TestAPlaceThatMayBeLeftWhenTheSafeIsHandedOverKeepsNobodyOut(t *testing.T) {
	for name, stands := range map[string]bool{"with another heir": true, "with nobody else": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, b := memkv.NewQueue(), newBallot(t)
				stopA := b.run(b.candidate(store, "a", firstCome), "a")
				time.Sleep(ttl)
				late := &loser{Queue: store}
				stopB := b.run(b.candidate(late, "b", firstCome), "b")
				for !late.joined.Load() {
					time.Sleep(time.Millisecond)
				}
				go func() { _ = stopA() }() // handed over while the join is under way
				time.Sleep(ttl / 5)
				require.Equal(t, "a b", b.leaders())
				c := b.candidate(store, "c", firstCome)
				if stands {
					b.run(c, "c")
					time.Sleep(ttl / 5)
				}
				require.ErrorIs(t, stopB(), context.Canceled)
				if !stands {
					b.run(c, "c")
				}
				b.within(time.Second, "a b c")
			})
		})
	}
}

// The place is the leader's record by now, and must not be given up as one that may
// be left.
func TestALeaderByAPlaceWhoseJoinWasNotAnsweredKeepsItsRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.NewQueue(), newBallot(t)
		mute := twice(store)
		mute.On(kvfault.HandOver).Fail(kv.ErrInvalid) // it hands nothing over
		stopA := b.run(b.candidate(mute.Store, "a", firstCome), "a")
		time.Sleep(ttl)
		faults := kvfault.Wrap(store)
		faults.On(kvfault.Join).FailReplies(errStore)
		b.run(b.candidate(faults.Store, "b", firstCome), "b")
		for faults.Calls(kvfault.Join) == 0 {
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
		creates := faults.Calls(kvfault.Create)
		require.ErrorIs(t, stopA(), context.Canceled)
		b.within(time.Second, "a b")
		require.Equal(t, creates, faults.Calls(kvfault.Create), "it leads by its place")
		faults.Heal()
		time.Sleep(5 * ttl)
		require.NoError(t, b.last().Err())
		require.Equal(t, "a b", b.leaders())
		require.Equal(t, b.last().Token(), leaderOf(t, store, b.name).Token)
	})
}

func TestOneAttemptThatIsRefusedLeavesAnOrdinaryCandidate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		b.run(b.candidate(store, "a"), "a")
		synctest.Wait()
		var roles []string
		_, err := b.candidate(store, "b", func(o *election.Options) {
			o.OnRole = func(r election.Role) { roles = append(roles, string(r)) }
		}).TryCampaign(t.Context())
		require.ErrorIs(t, err, election.ErrHeld)
		require.Equal(t, "candidate idle", strings.Join(roles, " "))
	})
}

func TestALeaderThatCannotReadWhoIsHeirEmptiesTheSafe(t *testing.T) {
	for name, cut := range map[string]func(faults twofold, leader *election.Term){
		"errors":     func(s twofold, _ *election.Term) { s.heirs.On().Fail(errStore) },
		"black hole": func(s twofold, _ *election.Term) { s.heirs.On().DropRequests() },
		"black hole during a call": func(s twofold, leader *election.Term) {
			go func() { _ = leader.Transfer(context.Background(), "nobody") }()
			time.Sleep(ttl / 10)
			s.heirs.On().DropRequests()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, b := memkv.New(), newBallot(t)
				faults := twice(store)
				stop := b.run(b.candidate(faults.Store, "a", firstCome), "a")
				time.Sleep(ttl)
				cut(faults, b.last())
				began := time.Now()
				require.ErrorIs(t, stop(), context.Canceled)
				require.Less(t, time.Since(began), ttl)
				requireVacant(t, store, b.name)
				faults.heirs.Heal()
			})
		})
	}
}

// everlasting shows what is in the heir's safe as a record whose expiry was taken
// away.
type everlasting struct{ kv.Store }

func (s everlasting) Get(ctx context.Context, name string) (kv.Record, error) {
	rec, err := s.Store.Get(ctx, name)
	return everlast(name, rec), err
}

func (s everlasting) Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	return func(yield func(kv.Record, error) bool) {
		for rec, err := range s.Store.Watch(ctx, name) {
			if !yield(everlast(name, rec), err) {
				return
			}
		}
	}
}

func everlast(name string, rec kv.Record) kv.Record {
	if strings.HasSuffix(name, ":heir") && strings.HasPrefix(rec.Value, "for ever") {
		rec.Permanent = true
	}
	return rec
}

// Invariant 9: nothing foreign is harmed.
func TestWhatNoHeirHasPutIntoItsSafeIsNeitherOverwrittenNorSucceeds(t *testing.T) {
	for name, occupy := range map[string]func(b *ballot, store *memkv.Store){
		"a foreign lock": func(b *ballot, store *memkv.Store) { store.Put(b.name+":heir", "somebody's lock") },
		"a record without an expiry": func(b *ballot, store *memkv.Store) {
			_, err := store.Create(b.t.Context(), b.name+":heir", kv.Record{Signature: "b/1", Value: "for ever", TTL: time.Hour})
			require.NoError(b.t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, b := memkv.New(), newBallot(t)
				faults := twice(store)
				term, err := b.candidate(views.Over(faults.Store, everlasting{faults.Store}), "a", firstCome).Campaign(t.Context())
				require.NoError(t, err)
				time.Sleep(ttl)
				occupy(b, store)
				before, err := store.Get(t.Context(), b.name+":heir")
				require.NoError(t, err)
				swaps, writes := faults.Calls(kvfault.Swap)+faults.Calls(kvfault.HandOver), faults.heirs.Calls(kvfault.Swap)+faults.heirs.Calls(kvfault.Delete)

				err = term.Transfer(t.Context(), "b")
				require.ErrorIs(t, err, election.ErrNoHeir)
				require.ErrorContains(t, err, "holds a record that no heir has written")
				require.NoError(t, term.Err())
				require.NoError(t, term.Resign(t.Context()))
				requireVacant(t, store, b.name)
				require.Equal(t, swaps, faults.Calls(kvfault.Swap)+faults.Calls(kvfault.HandOver), "nothing is handed over")
				require.Equal(t, writes, faults.heirs.Calls(kvfault.Swap)+faults.heirs.Calls(kvfault.Delete))
				after, err := store.Get(t.Context(), b.name+":heir")
				require.NoError(t, err)
				require.Equal(t, before, after)
			})
		})
	}
}

func TestARequestSaysThatALockStandsInItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		p.store.Put(p.name+":request", "somebody's lock")
		err := election.RequestResign(t.Context(), p.store, p.name)
		require.ErrorContains(t, err, `a lock that this library did not write is at "billing:request"`)
		require.NoError(t, p.leader.Err())
		rec, err := p.store.Get(t.Context(), p.name+":request")
		require.NoError(t, err)
		require.Equal(t, "somebody's lock", rec.Value)
	})
}

func TestAnHeirThatCannotTellWhoLeadsSaysSoInItsLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		b.run(b.candidate(store, "a", byRank(0)), "a")
		time.Sleep(ttl)
		faults := twice(store)
		faults.heirs.On(kvfault.Swap).Fail(kv.ErrInvalid)
		var log bytes.Buffer
		stop := b.run(b.candidate(faults.Store, "b", byRank(0), func(o *election.Options) {
			o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		}), "b")
		time.Sleep(ttl)
		require.ErrorIs(t, stop(), context.Canceled)
		require.Contains(t, log.String(), "cannot tell the others who leads")
	})
}

// The calls of slowCalls for an heir are carried out late, whether or not anybody
// waits for the answer, or never.
type slowCalls struct {
	kv.Store
	late  time.Duration
	never bool
	open  *atomic.Int64 // calls that are to be carried out yet
}

func (s slowCalls) Swap(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
	if !strings.Contains(next.Note, `"calls"`) {
		return s.Store.Swap(ctx, name, old, next)
	}
	answered := make(chan error, 1)
	if !s.never {
		s.open.Add(1)
		go func() {
			time.Sleep(s.late)
			_, err := s.Store.Swap(context.WithoutCancel(ctx), name, old, next)
			s.open.Add(-1) // before anybody goes on with the answer
			answered <- err
		}()
	}
	select {
	case <-ctx.Done():
		return kv.Record{}, context.Cause(ctx)
	case err := <-answered:
		return next, err
	}
}

// A call that came when the safe was handed over would take the heir's place away,
// and keep it from everybody until it fades.
func TestALeaderThatEndsDuringACallDoesNotLeaveItBehind(t *testing.T) {
	for name, calls := range map[string]slowCalls{
		"that is under way":            {late: ttl / 20},
		"that the store never answers": {never: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBallot(t)
				store := memkv.New()
				calls.Store, calls.open = store, &atomic.Int64{}
				stopA := b.run(b.candidate(calls, "a", firstCome), "a")
				time.Sleep(ttl)
				slow := twice(store)
				b.run(b.candidate(slow.Store, "b", firstCome), "b")
				b.run(b.candidate(store, "c", firstCome), "c")
				time.Sleep(ttl)
				slow.On(kvfault.Watch).DelayReplies(ttl / 10) // b hears late that it leads
				leader := b.last()
				refused := make(chan error, 1)
				go func() { refused <- leader.Transfer(context.Background(), "nobody") }()
				time.Sleep(ttl / 50)

				began := time.Now()
				require.ErrorIs(t, stopA(), context.Canceled)
				require.Zero(t, calls.open.Load(), "whoever asks for no more may exit")
				require.ErrorIs(t, <-refused, election.ErrResigned)
				require.Less(t, time.Since(began), ttl/3, "the end waits no longer than a request may take")
				time.Sleep(ttl / 4)
				require.Contains(t, []string{"a b", "a c"}, b.leaders())
				slow.Heal()
				_, err := election.CurrentHeir(t.Context(), store, b.name)
				require.NoError(t, err, "nobody is called any more")
			})
		})
	}
}

// Whoever answers too late is not preferred to others.
func TestAnAnswerThatNobodyWaitsForAnyMoreMakesNoHeir(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		faults := twice(store)
		b.succession(faults.Store, store)
		faults.heirs.On(kvfault.Watch).DelayReplies(ttl / 5)
		ctx, cancel := context.WithTimeout(t.Context(), ttl*3/10)
		defer cancel()
		time.AfterFunc(ttl/4, func() {
			rec, err := store.Get(t.Context(), b.name+":heir")
			require.NoError(t, err)
			require.Contains(t, rec.Note, `"called"`, "it has answered")
		})
		require.ErrorIs(t, b.last().Transfer(ctx, "b"), context.DeadlineExceeded)
		time.Sleep(ttl)
		rec, err := store.Get(t.Context(), b.name+":heir")
		require.NoError(t, err)
		require.NotContains(t, rec.Note, `"called"`, "b is heir like anybody")
		require.NoError(t, b.last().Err())
		require.Equal(t, "a", b.leaders())
		faults.Heal()
	})
}

func TestATransferThatTheStoreRefusesForGoodEndsSoonThoughTheStoreFallsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		faults := twice(store)
		b.run(b.candidate(faults.Store, "a", firstCome), "a")
		time.Sleep(ttl)
		faults.heirs.On(kvfault.Create, kvfault.Swap).Fail(kv.ErrInvalid)
		faults.heirs.On(kvfault.Get).DropRequests()
		began := time.Now()
		require.ErrorIs(t, b.last().Transfer(t.Context(), "b"), kv.ErrInvalid)
		require.Less(t, time.Since(began), ttl/3)
		require.NoError(t, b.last().Err())
		faults.heirs.Heal()
	})
}
