package engine_test

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvfault"
)

var errStore = errors.New("store: connection reset")

// cuts are the ways in which a leader loses its store without a word.
var cuts = map[string]func(*kvfault.Link){
	"black hole":   func(f *kvfault.Link) { f.On().DropRequests() },
	"lost replies": func(f *kvfault.Link) { f.On().DropReplies() },
	"deaf client":  func(f *kvfault.Link) { f.On().Hang() },
	"errors":       func(f *kvfault.Link) { f.On().Fail(errStore) },
}

// Invariants 1 and 2: one leader, and trust is counted from the send.
func TestAPartitionedLeaderStopsBeforeTheNextStarts(t *testing.T) {
	for name, cut := range cuts {
		t.Run(name, func(t *testing.T) {
			for lag := time.Duration(0); lag < ttl/2; lag += ttl / 7 {
				partition(t, cut, lag)
			}
		})
	}
}

// partition cuts a leader off, a while after its last refresh, which was slow.
func partition(t *testing.T, cut func(*kvfault.Link), lag time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		faults := kvfault.Wrap(store)
		var ended atomic.Int64
		stopA := b.runWith(b.candidate(faults.Store, "a"), "a", func(ctx context.Context, _ *election.Term) error {
			<-ctx.Done()
			ended.CompareAndSwap(0, time.Now().UnixNano())
			return nil
		})
		synctest.Wait()
		var began atomic.Int64
		stopB := b.runWith(b.candidate(store, "b"), "b", func(ctx context.Context, _ *election.Term) error {
			began.CompareAndSwap(0, time.Now().UnixNano())
			<-ctx.Done()
			return nil
		})
		faults.On(kvfault.Refresh).DelayReplies(ttl / 4)
		time.Sleep(2*ttl + lag)
		cut(faults)
		time.Sleep(3 * ttl)
		require.NotZero(t, ended.Load(), "its context ends though the store is silent")
		if began.Load() != 0 {
			require.LessOrEqual(t, ended.Load(), began.Load(), "and before the next leads")
		}
		faults.Heal()
		time.Sleep(2 * ttl)
		require.Contains(t, []string{"a b", "a b a"}, b.leaders())
		stopA()
		stopB()
	})
}

func TestASlowRefreshDoesNotExtendTrust(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBallot(t)
		faults := kvfault.Wrap(memkv.New())
		began := time.Now()
		term, err := b.candidate(faults.Store, "a").Campaign(t.Context())
		require.NoError(t, err)
		faults.On(kvfault.Refresh).DelayReplies(ttl / 4)
		time.Sleep(ttl * 6 / 10)
		require.Equal(t, ttl*12/10, term.Until().Sub(began), "the refresh was sent after 0.3 TTL; its reply came after 0.55")
		require.NoError(t, term.Resign(t.Context()))
	})
}

func TestTrustIsCountedFromTheTTLThatTheStoreGranted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBallot(t)
		store := &stingy{Store: memkv.New()}
		store.granted.Store(int64(ttl * 8 / 10))
		began := time.Now()
		term, err := b.candidate(store, "a").Campaign(t.Context())
		require.NoError(t, err)
		require.Equal(t, ttl*7/10, term.Until().Sub(began), "whatever was asked")
		store.granted.Store(int64(ttl * 6 / 10))
		time.Sleep(ttl * 4 / 10)
		require.Equal(t, ttl*8/10, term.Until().Sub(began), "refreshed after 0.3 TTL, for 0.6 TTL")
		require.NoError(t, term.Resign(t.Context()))
	})
}

// stingy is a store that grants another TTL than was asked.
type stingy struct {
	kv.Store
	granted atomic.Int64 // nanoseconds
}

func (s *stingy) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	rec, err := s.Store.Create(ctx, name, rec)
	rec.TTL = time.Duration(s.granted.Load())
	return rec, err
}

func (s *stingy) Refresh(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	rec, err := s.Store.Refresh(ctx, name, rec)
	rec.TTL = time.Duration(s.granted.Load())
	return rec, err
}

func TestARefreshThatFailsOnceOrLosesItsReplyCostsNothing(t *testing.T) {
	for name, fault := range map[string]func(kvfault.Faults){
		"fails":         func(f kvfault.Faults) { f.Fail(errStore) },
		"reply lost":    func(f kvfault.Faults) { f.DropReplies() },
		"request lost":  func(f kvfault.Faults) { f.DropRequests() },
		"broken after":  func(f kvfault.Faults) { f.FailReplies(errStore) },
		"unknown error": func(f kvfault.Faults) { f.Fail(context.DeadlineExceeded) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBallot(t)
				faults := kvfault.Wrap(memkv.New())
				term, err := b.candidate(faults.Store, "a").Campaign(t.Context())
				require.NoError(t, err)
				for range 10 {
					fault(faults.On(kvfault.Refresh).Next(1))
					time.Sleep(ttl)
					require.NoError(t, term.Err())
				}
				require.NoError(t, term.Resign(t.Context()))
			})
		})
	}
}

// Invariant 5: unknown is unknown.
func TestALostCreateReplyIsAdopted(t *testing.T) {
	for name, fault := range map[string]func(kvfault.Faults){
		"reply lost":   func(f kvfault.Faults) { f.DropReplies() },
		"broken after": func(f kvfault.Faults) { f.FailReplies(errStore) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBallot(t)
				faults := kvfault.Wrap(memkv.New())
				fault(faults.On(kvfault.Create).Next(1))
				began := time.Now()
				term, err := b.candidate(faults.Store, "a").Campaign(t.Context())
				require.NoError(t, err)
				require.Less(t, time.Since(began), ttl/2, "its own record does not keep it out")
				require.Equal(t, 1, faults.Calls(kvfault.Create))
				leader, err := election.Current(t.Context(), faults.Store, b.name)
				require.NoError(t, err)
				require.Equal(t, term.Token(), leader.Token)
				require.NoError(t, term.Resign(t.Context()))
			})
		})
	}
}

func TestACampaignThatEndsRemovesTheRecordThatItMayHaveWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		faults := kvfault.Wrap(store)
		faults.On(kvfault.Create).DropReplies()
		faults.On(kvfault.Watch).DropReplies()
		for range 2 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := b.candidate(faults.Store, "a").Campaign(ctx)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.NotZero(t, faults.Calls(kvfault.Create))
			_, err = store.Get(t.Context(), b.name)
			require.ErrorIs(t, err, kv.ErrVacant)
			faults.On(kvfault.Watch).Heal() // and once more with a watch that is not deaf
		}
	})
}

func TestACreateThatArrivesAfterItsCandidateHasGoneFades(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		faults := kvfault.Wrap(store)
		faults.On(kvfault.Create).Withhold()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := b.candidate(faults.Store, "a").Campaign(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NoError(t, errors.Join(faults.Deliver(t.Context())...))
		_, err = store.Get(t.Context(), b.name)
		require.NoError(t, err, "it is there")
		time.Sleep(ttl)
		_, err = store.Get(t.Context(), b.name)
		require.ErrorIs(t, err, kv.ErrVacant, "and nobody keeps it alive")
	})
}

func TestACreateThatArrivesLateDuringTheCampaignIsAdopted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBallot(t)
		faults := kvfault.Wrap(memkv.New())
		faults.On(kvfault.Create).Withhold()
		stop := b.run(b.candidate(faults.Store, "a"), "a")
		time.Sleep(ttl / 2)
		require.Empty(t, b.leaders())
		faults.Deliver(t.Context())
		time.Sleep(ttl / 3)
		require.Equal(t, "a", b.leaders())
		stop()
	})
}

func TestALateCreateOfAnEarlierAttemptDoesNotKeepALostTermAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		faults := kvfault.Wrap(store)
		faults.On(kvfault.Create).Next(1).Withhold()
		term, err := b.candidate(faults.Store, "a").Campaign(t.Context())
		require.NoError(t, err)
		b.count("a", term)
		faults.On(kvfault.Watch).DropReplies() // it does not see what comes
		store.Remove(b.name)
		next, err := b.candidate(store, "b").Campaign(t.Context())
		require.NoError(t, err)
		require.NoError(t, next.Resign(t.Context()))
		require.NoError(t, errors.Join(faults.Deliver(t.Context())...), "the old signature is back, under a new token")
		time.Sleep(ttl / 2)
		require.ErrorIs(t, term.Err(), election.ErrLost)
		require.NoError(t, term.Resign(t.Context()))
	})
}

func TestAnAnswerThatIsTooLateToBeTrustedIsNoTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBallot(t)
		store := &signatures{Store: memkv.New()}
		faults := kvfault.Wrap(store)
		faults.On(kvfault.Create).Next(1).Hang()
		time.AfterFunc(ttl*95/100, faults.Heal)
		began := time.Now()
		term, err := b.candidate(faults.Store, "a").Campaign(t.Context())
		require.NoError(t, err)
		require.NotZero(t, faults.Calls(kvfault.Delete), "the record is removed")
		require.Equal(t, 2, faults.Calls(kvfault.Create), "and another one put in")
		require.Len(t, store.seen, 2)
		require.NotEqual(t, store.seen[0], store.seen[1], "a slow watch that still shows the first is not believed")
		require.GreaterOrEqual(t, term.Until().Sub(began), ttl*95/100+2*ttl/50+ttl*9/10, "after the others had a moment to claim the safe")
		require.NoError(t, term.Resign(t.Context()))
	})
}

// signatures is a store that remembers what was put in.
type signatures struct {
	*memkv.Store
	seen []string
}

func (s *signatures) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	s.seen = append(s.seen, rec.Signature)
	return s.Store.Create(ctx, name, rec)
}

// A store may have begun to end a record that is older than its TTL when a
// refresh comes, and grant the refresh all the same.
func TestAnOwnRecordThatMayBeOlderThanItsTTLIsRemovedAndNotAdopted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBallot(t)
		faults := kvfault.Wrap(lingering{memkv.New()})
		faults.On(kvfault.Create).DelayRequests(100 * time.Millisecond)
		faults.On(kvfault.Create).Next(1).DropReplies()
		time.AfterFunc(50*time.Millisecond, faults.On(kvfault.Watch).DropReplies) // it does not see the record come
		time.AfterFunc(ttl*3/2, func() {
			faults.On(kvfault.Watch).Next(1).Fail(errStore)
			synctest.Wait()
			faults.Heal()
		})
		began := time.Now()
		term, err := b.candidate(faults.Store, "a", noHeir).Campaign(t.Context()) // an heir looks for itself
		require.NoError(t, err)
		require.Greater(t, time.Since(began), ttl*3/2)
		require.NotZero(t, faults.Calls(kvfault.Delete))
		require.Zero(t, faults.Calls(kvfault.Refresh))
		require.NoError(t, term.Resign(t.Context()))
	})
}

// lingering is a store that keeps records for twice their TTL, as Consul does.
type lingering struct{ *memkv.Store }

func (s lingering) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	rec.TTL *= 2
	rec, err := s.Store.Create(ctx, name, rec)
	rec.TTL /= 2
	return rec, err
}

func (s lingering) Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	return func(yield func(kv.Record, error) bool) {
		for rec, err := range s.Store.Watch(ctx, name) {
			rec.TTL /= 2
			if !yield(rec, err) {
				return
			}
		}
	}
}

func TestResignEndsTheTermThoughTheStoreIsDownAndCanBeRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		faults := kvfault.Wrap(store)
		term, err := b.candidate(faults.Store, "a").Campaign(t.Context())
		require.NoError(t, err)
		faults.On().Fail(errStore)
		require.ErrorIs(t, resignSoon(t, term), errStore)
		require.ErrorIs(t, term.Err(), election.ErrResigned)

		faults.On().Heal()
		faults.On().DropReplies()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, term.Resign(ctx), context.DeadlineExceeded, "bounded by its context")
		faults.Heal()
		require.NoError(t, term.Resign(t.Context()), "the delete whose reply was lost has been carried out")
		_, err = store.Get(t.Context(), b.name)
		require.ErrorIs(t, err, kv.ErrVacant)
	})
}

func TestShutdownDoesNotHangOnAStoreThatIsDown(t *testing.T) {
	for name, cut := range cuts {
		if name == "deaf client" {
			continue // a store call that ignores its context is waited for
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBallot(t)
				faults := kvfault.Wrap(memkv.New())
				stop := b.run(b.candidate(faults.Store, "a"), "a")
				time.Sleep(ttl)
				cut(faults)
				began := time.Now()
				require.ErrorIs(t, stop(), context.Canceled)
				require.LessOrEqual(t, time.Since(began), ttl/3)
			})
		})
	}
}

func TestALostTermIsKeptFromOthersWhileItsWorkGoesOnIfTheStoreComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		faults := kvfault.Wrap(store)
		var working atomic.Bool
		stopA := b.runWith(b.candidate(faults.Store, "a"), "a", func(ctx context.Context, term *election.Term) error {
			working.Store(true)
			<-ctx.Done()
			time.Sleep(5 * ttl)
			require.ErrorIs(t, term.Err(), election.ErrLost, "it does not come back to life")
			working.Store(false)
			return nil
		})
		synctest.Wait()
		stopB := b.runWith(b.candidate(store, "b"), "b", func(ctx context.Context, _ *election.Term) error {
			require.False(t, working.Load(), "both at work")
			<-ctx.Done()
			return nil
		})
		time.Sleep(ttl / 100)
		faults.On(kvfault.Refresh).DropRequests()
		time.Sleep(ttl * 895 / 1000) // trust has run out; the record has a little to live
		require.ErrorIs(t, b.last().Err(), election.ErrLost)
		faults.Heal()
		faults.On(kvfault.Refresh).Heal()
		time.Sleep(10 * ttl)
		require.Equal(t, "a b", b.leaders())
		stopA()
		stopB()
	})
}

// Invariant 7: waiting is free, but for the heir.
func TestAFollowerIsIdle(t *testing.T) {
	for name, c := range map[string]struct {
		creates int
		change  func(*election.Options)
	}{
		"with an heir": {2, func(*election.Options) {}}, "without": {1, noHeir},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, b := memkv.New(), newBallot(t)
				stopA := b.run(b.candidate(store, "a", c.change), "a")
				synctest.Wait()
				stopB := b.run(b.candidate(store, "b", c.change), "b")
				time.Sleep(ttl)
				faults := kvfault.Wrap(store)
				stopC := b.run(b.candidate(faults.Store, "c", c.change), "c")
				time.Sleep(1000 * ttl)
				require.Equal(t, 1, faults.Calls(kvfault.Watch))
				require.Equal(t, c.creates, faults.Calls(kvfault.Create), "it tries once when it comes")
				for _, op := range []kvfault.Op{kvfault.Swap, kvfault.Refresh, kvfault.Delete, kvfault.Get} {
					require.Zero(t, faults.Calls(op), op)
				}
				stopC()
				stopB()
				stopA()
			})
		})
	}
}

func TestAVacancyDoesNotMakeAHerd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		stopA := b.run(b.candidate(store, "a", noHeir), "a")
		synctest.Wait()
		faults := kvfault.Wrap(store)
		faults.On().DelayRequests(3 * time.Millisecond)
		faults.On().DelayReplies(3 * time.Millisecond)
		var stops sync.WaitGroup
		for range 200 {
			stop := b.run(b.candidate(faults.Store, "b", noHeir), "b")
			stops.Go(func() {
				time.Sleep(10 * ttl)
				stop()
			})
		}
		time.Sleep(ttl)
		require.Equal(t, 200, faults.Calls(kvfault.Create), "each tries once when it comes")
		stopA()
		time.Sleep(ttl)
		require.Equal(t, "a b", b.leaders())
		require.LessOrEqual(t, faults.Calls(kvfault.Create)-200, 50, "of 200 that saw the vacancy")
		stops.Wait()
	})
}

func TestNothingSpinsWhileTheStoreIsDown(t *testing.T) {
	for name, cut := range cuts {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, b := memkv.New(), newBallot(t)
				faults := kvfault.Wrap(store)
				stop := b.run(b.candidate(faults.Store, "a"), "a")
				time.Sleep(ttl)
				cut(faults)
				before := calls(faults)
				time.Sleep(100 * ttl)
				require.LessOrEqual(t, calls(faults)-before, 2000, "in 1000 s")
				faults.On(kvfault.Watch).Next(1).Fail(errStore) // what it was deaf to stays lost
				synctest.Wait()
				faults.Heal()
				time.Sleep(ttl)
				require.NoError(t, b.last().Err(), "and it leads again soon after")
				stop()
			})
		})
	}
}

func TestAWatchThatBreaksAtOnceEachTimeIsNotRestartedInALoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		store.Put(b.name, "old lock")
		broken := &breaking{Store: store}
		stop := b.run(b.candidate(broken, "a"), "a")
		time.Sleep(100 * ttl)
		require.LessOrEqual(t, broken.watches.Load(), int64(2200), "of two safes, in 1000 s")
		require.Greater(t, broken.watches.Load(), int64(900), "and it is the watches that break")
		stop()
	})
}

// breaking is a store whose watches yield the present state and break. It is no kv.Board.
type breaking struct {
	kv.Store
	watches atomic.Int64
}

func (s *breaking) Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	s.watches.Add(1)
	return func(yield func(kv.Record, error) bool) {
		if yield(s.Get(ctx, name)) {
			yield(kv.Record{}, errStore)
		}
	}
}

func TestAVacantSafeThatTheStoreKeepsClosedIsClaimedSoonAfterItOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBallot(t)
		faults := kvfault.Wrap(memkv.New())
		faults.On(kvfault.Create).Fail(kv.ErrHeld) // a lock-delay
		stop := b.run(b.candidate(faults.Store, "a"), "a")
		time.Sleep(15 * time.Second)
		require.LessOrEqual(t, faults.Calls(kvfault.Create), 30)
		faults.Heal()
		time.Sleep(2 * time.Second)
		require.Equal(t, "a", b.leaders())
		stop()
	})
}

func TestADeletedRecordIsNoticedAtTheNextRefreshEvenIfTheWatchIsDeaf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		faults := kvfault.Wrap(store)
		term, err := b.candidate(faults.Store, "a").Campaign(t.Context())
		require.NoError(t, err)
		faults.On(kvfault.Watch).DropReplies()
		time.Sleep(time.Second)
		store.Remove(b.name)
		time.Sleep(ttl / 3)
		require.ErrorIs(t, term.Err(), election.ErrLost)
		require.NoError(t, term.Resign(t.Context()))
	})
}

func TestProclaimCanBeRetriedAfterALostReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBallot(t)
		faults := kvfault.Wrap(memkv.New())
		term, err := b.candidate(faults.Store, "a").Campaign(t.Context())
		require.NoError(t, err)
		faults.On(kvfault.Swap).Next(1).FailReplies(errStore)
		require.NoError(t, term.Proclaim(t.Context(), "one"), "it looks, and finds that it was published")
		require.NoError(t, term.Err(), "that is no loss")
		require.NoError(t, term.Proclaim(t.Context(), "two"))
		leader, err := election.Current(t.Context(), faults.Store, b.name)
		require.NoError(t, err)
		require.Equal(t, "two", leader.Value)
		require.NoError(t, term.Resign(t.Context()))
	})
}

func TestACampaignThatFailsSaysWhatTroubleThereWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBallot(t)
		faults := kvfault.Wrap(memkv.New())
		faults.On(kvfault.Create, kvfault.Watch).Fail(errStore)
		ctx, cancel := context.WithTimeout(t.Context(), ttl)
		defer cancel()
		_, err := b.candidate(faults.Store, "a").Campaign(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, errStore)
	})
}

// Invariant 9: everything started is joined.
func TestNothingIsLeftWhenRunCampaignOrResignHasReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		var health gate
		a := b.candidate(store, "a", health.option)
		nothingLeft := func(after string) {
			synctest.Wait() // for goroutines on their very last instructions
			stacks := make([]byte, 1<<20)
			stacks = stacks[:runtime.Stack(stacks, true)]
			for _, stack := range strings.Split(string(stacks), "\n\n")[1:] { // the first is this one
				require.NotRegexp(t, `electkv/election(/backends/mem)?\.\(`, stack, "after "+after)
			}
		}
		for range 3 {
			term, err := a.Campaign(t.Context())
			require.NoError(t, err)
			time.Sleep(ttl)
			require.NoError(t, term.Resign(t.Context()))
			nothingLeft("Resign")

			require.NoError(t, a.Run(t.Context(), func(context.Context, *election.Term) error {
				time.Sleep(ttl)
				return nil
			}))
			nothingLeft("Run")

			store.Put(b.name, "old lock")
			ctx, cancel := context.WithTimeout(t.Context(), ttl)
			_, err = a.Campaign(ctx)
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
			nothingLeft("Campaign")
			store.Remove(b.name)
		}
	})
}

func calls(faults *kvfault.Link) (n int) {
	for op := kvfault.Create; op <= kvfault.Watch; op++ {
		n += faults.Calls(op)
	}
	return n
}
