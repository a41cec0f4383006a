package engine_test

import (
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"sync"
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

// who returns what the safe holds: a candidate's ID, another program's value in
// brackets, or nothing.
func who(t *testing.T, store kv.Store, name string) string {
	t.Helper()
	leader, err := election.Current(t.Context(), store, name)
	if errors.Is(err, election.ErrNoLeader) {
		return ""
	}
	require.NoError(t, err)
	if leader.Foreign {
		return "[" + leader.Value + "]"
	}
	return leader.ID
}

func TestACandidateWaitsItsTurnInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.NewQueue(), newBallot(t)
		store.PutLast(b.name, "old 1")
		stop := b.run(b.candidate(store, "a"), "a")
		time.Sleep(3 * ttl)
		store.PutLast(b.name, "old 2")
		b.run(b.candidate(store, "b"), "b")
		time.Sleep(3 * ttl)
		store.PutLast(b.name, "old 3")
		require.Equal(t, "[old 1]", who(t, store, b.name))
		require.Empty(t, b.leaders())

		store.Remove(b.name)
		require.Equal(t, "a", who(t, store, b.name), "its place is in the safe at once")
		leader, err := election.Current(t.Context(), store, b.name)
		require.NoError(t, err)
		require.Zero(t, leader.Since, "its place tells when it came, not since when it leads")
		synctest.Wait()
		require.Equal(t, "a", b.leaders())
		time.Sleep(3 * ttl)
		require.NoError(t, b.last().Err())

		require.ErrorIs(t, stop(), context.Canceled)
		require.Equal(t, "[old 2]", who(t, store, b.name))
		store.Remove(b.name)
		synctest.Wait()
		require.Equal(t, "a b", b.leaders())
		time.Sleep(3 * ttl)
		require.NoError(t, b.last().Err())
	})
}

func TestALineIsFairAmongCandidates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.NewQueue(), newBallot(t)
		for _, id := range []string{"a", "b", "c"} {
			b.runWith(b.candidate(store, id), id, func(ctx context.Context, term *election.Term) error {
				time.Sleep(time.Second)
				require.NoError(t, term.Resign(ctx))
				return nil
			})
			synctest.Wait()
		}
		time.Sleep(3*time.Second + ttl/2)
		require.Regexp(t, `^a b c a b c`, b.leaders())
	})
}

func TestAPlaceIsTrustedFromWhenItWasLastKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.NewQueue(), newBallot(t)
		store.PutLast(b.name, "old")
		faults := kvfault.Wrap(store)
		b.run(b.candidate(faults.Store, "a"), "a")
		synctest.Wait()
		kept := time.Now() // it has joined
		time.Sleep(ttl / 10)
		store.Remove(b.name)
		faults.On(kvfault.Refresh).DropRequests()
		synctest.Wait()
		require.Equal(t, "a", b.leaders())
		require.False(t, b.last().Until().After(kept.Add(ttl-ttl/10)), "counted from the join, not from the vacancy")
	})
}

// The store takes the requests at once, and its answers are under way for long.
func TestAPlaceIsTrustedFromTheSendOfWhatKeptIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.NewQueue(), newBallot(t)
		store.PutLast(b.name, "old")
		var kept time.Time
		faults := kvfault.Wrap(&placeStore{Queue: store, kept: func(kv.Record) { kept = time.Now() }})
		faults.On(kvfault.Stay).DelayReplies(ttl / 4)
		b.run(b.candidate(faults.Store, "a"), "a")
		time.Sleep(ttl)
		for answers := faults.Calls(kvfault.Stay); faults.Calls(kvfault.Stay) == answers; {
			time.Sleep(ttl / 100)
		}
		time.Sleep(ttl / 4)
		faults.On(kvfault.Refresh).DropRequests()
		store.Remove(b.name)
		synctest.Wait()
		require.Equal(t, "a", b.leaders())
		require.False(t, b.last().Until().After(kept.Add(ttl-ttl/10)))
	})
}

func TestAPlaceThatIsFoundAgainIsTrustedFromItsFirstJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.NewQueue(), newBallot(t)
		store.PutLast(b.name, "old")
		faults := kvfault.Wrap(store)
		faults.On(kvfault.Join).Next(1).DropReplies()
		faults.On(kvfault.Stay, kvfault.Refresh).DropRequests()
		joined := time.Now()
		b.run(b.candidate(faults.Store, "a"), "a")
		for faults.Calls(kvfault.Join) < 2 {
			time.Sleep(ttl / 100)
		}
		store.Remove(b.name)
		time.Sleep(ttl / 3) // it may have to wait for a stay that is lost
		require.Equal(t, "a", b.leaders())
		require.False(t, b.last().Until().After(joined.Add(ttl-ttl/10)))
	})
}

func TestACandidateWhoseWatchIsDeadLearnsOfItsTurnByStaying(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.NewQueue(), newBallot(t)
		store.PutLast(b.name, "old")
		faults := kvfault.Wrap(store)
		b.run(b.candidate(faults.Store, "a"), "a")
		synctest.Wait()
		faults.On(kvfault.Watch).DropRequests()
		store.Remove(b.name)
		time.Sleep(ttl / 2)
		require.Equal(t, "a", b.leaders())
	})
}

func TestAPlaceWhoseKeepingIsNotAnsweredIsNotTrusted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.NewQueue(), newBallot(t)
		store.PutLast(b.name, "old")
		faults := kvfault.Wrap(store)
		b.run(b.candidate(faults.Store, "a"), "a")
		synctest.Wait()
		faults.On(kvfault.Stay).DropReplies() // the store keeps the place
		time.Sleep(2 * ttl)
		faults.On(kvfault.Delete).Hang() // what is not trusted cannot be removed yet
		store.Remove(b.name)
		require.Equal(t, "a", who(t, store, b.name), "the place is still there")
		synctest.Wait()
		require.Empty(t, b.leaders())
		faults.Heal()
		time.Sleep(ttl)
		require.Equal(t, "a", b.leaders(), "under a new signature")
	})
}

func TestAPlaceOfACandidateThatIsCutOffFades(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.NewQueue(), newBallot(t)
		store.PutLast(b.name, "old")
		faults := kvfault.Wrap(store)
		b.run(b.candidate(faults.Store, "a"), "a")
		synctest.Wait()
		store.PutLast(b.name, "older still")
		faults.On().DropRequests()
		time.Sleep(ttl + time.Second)
		store.Remove(b.name)
		require.Equal(t, "[older still]", who(t, store, b.name))
		faults.Heal()
		time.Sleep(ttl)
		store.Remove(b.name)
		synctest.Wait()
		require.Equal(t, "a", who(t, store, b.name), "it has joined again")
		require.Equal(t, "a", b.leaders())
	})
}

func TestAPlaceWhoseAnswerWasLostIsFoundAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.NewQueue(), newBallot(t)
		store.PutLast(b.name, "old")
		faults := kvfault.Wrap(store)
		faults.On(kvfault.Join).Next(1).DropReplies()
		stop := b.run(b.candidate(faults.Store, "a"), "a")
		time.Sleep(ttl)
		require.Equal(t, 2, faults.Calls(kvfault.Join))
		store.Remove(b.name)
		synctest.Wait()
		require.Equal(t, "a", b.leaders())
		require.ErrorIs(t, stop(), context.Canceled)
		require.Empty(t, who(t, store, b.name), "there was one place")
	})
}

func TestJoinsThatAreNeverAnsweredKeepNobodyOut(t *testing.T) {
	for what, fault := range map[string]func(*kvfault.Link){
		"join":          func(f *kvfault.Link) { f.On(kvfault.Join).DropReplies() },
		"join and stay": func(f *kvfault.Link) { f.On(kvfault.Join, kvfault.Stay).DropReplies() },
		"stay":          func(f *kvfault.Link) { f.On(kvfault.Stay).DropReplies() },
		"all":           func(f *kvfault.Link) { time.AfterFunc(ttl, f.On().DropReplies) },
		"all but watch": func(f *kvfault.Link) {
			f.On(kvfault.Join, kvfault.Stay, kvfault.Create, kvfault.Refresh, kvfault.Delete).DropReplies()
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, b := memkv.NewQueue(), newBallot(t)
				store.PutLast(b.name, "old")
				faults := kvfault.Wrap(store)
				fault(faults)
				b.run(b.candidate(faults.Store, "a"), "a")
				time.Sleep(ttl / 100)
				b.run(b.candidate(store, "b"), "b")
				time.Sleep(5 * ttl)
				store.Remove(b.name)
				time.Sleep(100 * ttl)
				require.Contains(t, b.leaders(), "b")
			})
		})
	}
}

func TestACampaignThatEndsLeavesTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.NewQueue(), newBallot(t)
		store.PutLast(b.name, "old")
		ctx, cancel := context.WithTimeout(t.Context(), ttl/2)
		defer cancel()
		_, err := b.candidate(store, "a").Campaign(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		store.Remove(b.name)
		require.Empty(t, who(t, store, b.name))
	})
}

func TestAPlaceThatAnOperatorTakesAwayIsTakenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.NewQueue(), newBallot(t)
		store.PutLast(b.name, "old")
		var place kv.Record
		watched := &placeStore{Queue: store, kept: func(rec kv.Record) { place = rec }}
		b.run(b.candidate(watched, "a"), "a")
		synctest.Wait()
		require.NoError(t, store.Delete(t.Context(), b.name, place))
		time.Sleep(ttl)
		store.Remove(b.name)
		synctest.Wait()
		require.Equal(t, "a", b.leaders())
	})
}

// A placeStore tells of the places that are taken and kept in it.
type placeStore struct {
	*memkv.Queue
	kept func(kv.Record)
}

func (s *placeStore) Join(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	place, err := s.Queue.Join(ctx, name, rec)
	s.kept(place)
	return place, err
}

func (s *placeStore) Stay(ctx context.Context, name string, rec kv.Record) (kv.Record, bool, error) {
	place, leads, err := s.Queue.Stay(ctx, name, rec)
	s.kept(place)
	return place, leads, err
}

func TestACandidateInBadHealthLeavesTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.NewQueue(), newBallot(t)
		store.PutLast(b.name, "old")
		var sick atomic.Bool
		a := b.candidate(store, "a", func(o *election.Options) {
			o.Health = func(context.Context) error {
				if sick.Load() {
					return errors.New("sick")
				}
				return nil
			}
		})
		b.run(a, "a")
		synctest.Wait()
		store.PutLast(b.name, "next")
		sick.Store(true)
		store.Remove(b.name) // its turn has come, and it is sick
		time.Sleep(ttl)
		require.Equal(t, "[next]", who(t, store, b.name))
		require.Empty(t, b.leaders())
		sick.Store(false)
		time.Sleep(ttl)
		sick.Store(true) // while it waits
		time.Sleep(ttl / 2)
		store.Remove(b.name)
		require.Empty(t, who(t, store, b.name))
		sick.Store(false)
		time.Sleep(ttl)
		require.Equal(t, "a", b.leaders())
	})
}

// A request to leave may be carried out long after it was sent. Until then the
// candidate is well again, and its turn would come.
func TestAPlaceThatMayHaveBeenGivenUpIsNotLedBy(t *testing.T) {
	for what, first := range map[string]bool{"while it waits": false, "when its turn comes": true} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, b := memkv.NewQueue(), newBallot(t)
				store.PutLast(b.name, "old")
				faults := kvfault.Wrap(store)
				var sick atomic.Bool
				b.run(b.candidate(faults.Store, "a", func(o *election.Options) {
					o.Health = func(context.Context) error {
						if sick.Load() {
							return errors.New("sick")
						}
						return nil
					}
				}), "a")
				synctest.Wait()
				store.PutLast(b.name, "next")
				sick.Store(true)
				faults.On(kvfault.Delete).Next(1).Withhold()
				if first {
					store.Remove(b.name)
				}
				for faults.Calls(kvfault.Delete) == 0 {
					time.Sleep(ttl / 100)
				}
				sick.Store(false)
				time.Sleep(ttl / 2)
				if who(t, store, b.name) != "[next]" {
					store.Remove(b.name) // what it has left, or who was before it
				}
				synctest.Wait()
				faults.Deliver(t.Context())
				require.Equal(t, "[next]", who(t, store, b.name))
				synctest.Wait()
				require.Empty(t, b.leaders(), "it would lead by a place that is gone")
				store.Remove(b.name)
				time.Sleep(ttl)
				require.Equal(t, "a", b.leaders(), "it has joined again")
			})
		})
	}
}

// A create was refused, and a copy of it is carried out all the same when those in
// line have gone: what a join finds then is older than the join.
func TestWhatARefusedCreatePutsInLateIsNotTakenForAPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.NewQueue(), newBallot(t)
		late := &lateStore{Queue: store}
		faults := kvfault.Wrap(late)
		checks := 0
		b.run(b.candidate(faults.Store, "a", func(o *election.Options) {
			o.Health = func(context.Context) error {
				switch checks++; checks {
				case 1: // before the create
					store.PutLast(b.name, "old")
				case 2: // before the join
					store.Remove(b.name)
					_, err := store.Create(t.Context(), b.name, late.refused)
					require.NoError(t, err)
					time.Sleep(ttl / 4)
				}
				return nil
			}
		}), "a")
		time.Sleep(ttl / 10)
		faults.On(kvfault.Stay, kvfault.Refresh).DropRequests()
		b.run(b.candidate(store, "b"), "b")
		time.Sleep(3 * ttl)
		require.Contains(t, b.leaders(), "b", "and no two at once")
	})
}

// A lateStore tells which create was refused.
type lateStore struct {
	*memkv.Queue
	refused kv.Record
}

func (s *lateStore) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	got, err := s.Queue.Create(ctx, name, rec)
	if errors.Is(err, kv.ErrHeld) && s.refused.Signature == "" {
		s.refused = rec
	}
	return got, err
}

func TestAStoreWithoutLinesIsNeverAskedForAPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		store.Put(b.name, "old")
		faults := kvfault.Wrap(store)
		b.run(b.candidate(faults.Store, "a"), "a")
		for range 5 {
			time.Sleep(10 * ttl)
			store.Put(b.name, time.Now().String())
			synctest.Wait()
			faults.On(kvfault.Create).Fail(kv.ErrHeld)
			store.Remove(b.name)
			synctest.Wait()
		}
		require.Zero(t, faults.Calls(kvfault.Join))
		require.Zero(t, faults.Calls(kvfault.Stay))
	})
}

// hold has a candidate lead for a TTL at a time. A term that a hanging call has
// kept until it was over does not count.
func (b *ballot) hold(c *election.Candidate, id string) {
	var stopped sync.WaitGroup
	b.t.Cleanup(stopped.Wait)
	stopped.Go(func() {
		_ = c.Run(b.t.Context(), func(ctx context.Context, term *election.Term) error {
			if term.Err() != nil {
				return nil //nolint:nilerr // it was told so already
			}
			b.count(id, term)
			select {
			case <-ctx.Done():
			case <-time.After(ttl):
			}
			return term.Resign(context.WithoutCancel(ctx))
		})
	})
}

func TestABusyLineThatCannotBeJoinedIsNotBesieged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.NewQueue(), newBallot(t)
		faults := kvfault.Wrap(store)
		faults.On(kvfault.Join).Fail(errors.New("no leader"))
		store.PutLast(b.name, "old")
		b.run(b.candidate(faults.Store, "a"), "a")
		for range 1000 {
			store.Put(b.name, time.Now().String())
			time.Sleep(ttl / 100)
		}
		require.Less(t, faults.Calls(kvfault.Join), 100, "in ten TTLs")
	})
}

// Old clients come and go, everything fails now and then, and at most one leads
// (the ballot counts).
func TestALineInBadWeatherHasOneLeader(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			store, b := memkv.NewQueue(), newBallot(t)
			dice := rand.New(rand.NewPCG(seed, 4)) //nolint:gosec // a schedule, no secret
			fleet := []*kvfault.Link{}
			for _, id := range []string{"a", "b", "c"} {
				faults := kvfault.Wrap(store)
				fleet = append(fleet, faults)
				b.hold(b.candidate(faults.Store, id), id)
			}
			strikes := []func(kvfault.Faults){
				kvfault.Faults.DropReplies, kvfault.Faults.DropRequests, kvfault.Faults.Hang,
				func(f kvfault.Faults) { f.Fail(errors.New("no leader")) },
				func(f kvfault.Faults) { f.DelayReplies(ttl / 4) },
			}
			for range 150 {
				faults := fleet[dice.IntN(len(fleet))]
				switch op := kvfault.Op(dice.IntN(8)); dice.IntN(5) {
				case 0:
					store.PutLast(b.name, "old")
				case 1, 2:
					if who(t, store, b.name) == "[old]" {
						store.Remove(b.name)
					}
				case 3:
					strikes[dice.IntN(len(strikes))](faults.On(op))
				default:
					faults.Heal()
				}
				time.Sleep(time.Duration(dice.Int64N(int64(ttl))))
			}
			for _, faults := range fleet {
				faults.Heal()
			}
			for range 60 {
				time.Sleep(ttl)
				if who(t, store, b.name) == "[old]" {
					store.Remove(b.name)
				}
			}
			for _, id := range []string{"a", "b", "c"} {
				require.Contains(t, b.leaders(), id, "seed %d", seed)
			}
		})
	}
}

// What an outage has left in doubt is worth nothing when it is over: it must not
// be taken for the age of the place that is taken then.
func TestAPlaceThatIsTakenAfterAnOutageIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.NewQueue(), newBallot(t)
		faults := kvfault.Wrap(store)
		faults.On(kvfault.Create).Fail(errors.New("no leader"))
		b.run(b.candidate(faults.Store, "a"), "a")
		time.Sleep(3 * ttl)
		store.PutLast(b.name, "old")
		faults.Heal()
		synctest.Wait()
		time.Sleep(ttl / 100)
		store.Remove(b.name)
		synctest.Wait()
		require.Equal(t, "a", who(t, store, b.name))
		require.Equal(t, "a", b.leaders())
		require.Equal(t, 1, faults.Calls(kvfault.Join))
	})
}

// The campaign has a place when an old sighting shows a vacancy: the claim that
// follows is refused, and the place stays.
func TestARefusedClaimDoesNotCostAPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.NewQueue(), newBallot(t)
		store.PutLast(b.name, "old")
		faults := kvfault.Wrap(store)
		b.run(b.candidate(views.Over(faults.Store, forgetful{faults.Store}), "a"), "a")
		time.Sleep(ttl / 2)
		require.NotZero(t, faults.Calls(kvfault.Create), "it has claimed")
		store.Remove(b.name)
		time.Sleep(ttl / 10)
		require.Equal(t, "a", b.leaders())
		require.Equal(t, 1, faults.Calls(kvfault.Join))
	})
}

// A forgetful store shows a vacancy after each foreign record that it shows.
type forgetful struct{ kv.Store }

func (s forgetful) Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	return func(yield func(kv.Record, error) bool) {
		for rec, err := range s.Store.Watch(ctx, name) {
			if !yield(rec, err) {
				return
			}
			time.Sleep(ttl / 100)
			if err == nil && rec.Foreign && !yield(kv.Record{}, kv.ErrVacant) {
				return
			}
		}
	}
}
