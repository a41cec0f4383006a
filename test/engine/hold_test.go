package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvfault"
)

const hold = 60 * time.Second

func holding(o *election.Options) { o.Hold = hold }

// shifts note when work begins, and whose.
type shifts struct {
	t     *testing.T
	mu    sync.Mutex
	begun []time.Time
	whose []string
}

func (s *shifts) begins() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.begun)
}

func (s *shifts) ids() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.whose)
}

// work returns work that lasts for a while.
func (s *shifts) work(id string, lasts time.Duration) func(context.Context, *election.Term) error {
	return func(ctx context.Context, term *election.Term) error {
		require.NoError(s.t, term.Err())
		s.mu.Lock()
		s.begun, s.whose = append(s.begun, time.Now()), append(s.whose, id)
		s.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(lasts):
		}
		return nil
	}
}

// apart requires that work began so often, each time a hold after the last.
func (s *shifts) apart(times int) {
	s.t.Helper()
	begins := s.begins()
	require.Len(s.t, begins, times, "work began: %v", s.ids())
	for i := 1; i < times; i++ {
		require.GreaterOrEqual(s.t, begins[i].Sub(begins[i-1]), hold, "work %d of %v", i, s.ids())
	}
}

// inHold runs a test in a bubble.
func inHold(t *testing.T, test func(t *testing.T, store *memkv.Store, b *ballot, s *shifts)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(t, memkv.New(), newBallot(t), &shifts{t: t})
	})
}

func TestWorkThatIsQuickKeepsTheElectionClosedForItsHold(t *testing.T) {
	inHold(t, func(t *testing.T, store *memkv.Store, b *ballot, s *shifts) {
		require.NoError(t, b.candidate(store, "a", holding).Run(t.Context(), s.work("a", 0)))
		require.NoError(t, b.candidate(store, "b", holding).Run(t.Context(), s.work("b", 0)))
		require.NoError(t, b.candidate(store, "a", holding).Run(t.Context(), s.work("a", 0)), "its own hold keeps it out, too")
		s.apart(3)
		require.Less(t, s.begins()[1].Sub(s.begins()[0]), hold+ttl/2, "told by the store, at once")
	})
}

func TestOneAttemptThatComesLateFindsTheHoldAndSaysWhoseItIs(t *testing.T) {
	inHold(t, func(t *testing.T, store *memkv.Store, b *ballot, s *shifts) {
		require.NoError(t, b.candidate(store, "a", holding).TryRun(t.Context(), s.work("a", 0)))
		before := time.Now()
		time.Sleep(2 * time.Second)
		faults := kvfault.Wrap(store)
		err := b.candidate(faults.Store, "b", holding).TryRun(t.Context(), s.work("b", 0))
		require.ErrorIs(t, err, election.ErrHeld)
		require.ErrorContains(t, err, `"a" has closed the election until about `+before.Add(hold).Format("2006-01-02T15:04:"))
		require.Zero(t, faults.Calls(kvfault.Create), "it need not be elected to learn that")
		time.Sleep(hold + ttl/3)
		require.NoError(t, b.candidate(store, "b", holding).TryRun(t.Context(), s.work("b", 0)))
		s.apart(2)
	})
}

// Both find the election open; the second to be elected finds the first one's hold.
func TestOneAttemptThatIsElectedBesideAHoldGivesTheSafeUp(t *testing.T) {
	inHold(t, func(t *testing.T, store *memkv.Store, b *ballot, s *shifts) {
		late := kvfault.Wrap(store)
		late.On(kvfault.Create).DelayRequests(time.Second)
		result, began := make(chan error), time.Now()
		var c chronicle
		told := func(o *election.Options) { o.Hooks = c.hooks() }
		go func() { result <- b.candidate(late.Store, "b", holding, told).TryRun(t.Context(), s.work("b", 0)) }()
		time.Sleep(time.Second / 2)
		require.NoError(t, b.candidate(store, "a", holding).TryRun(t.Context(), s.work("a", 0)))
		require.ErrorIs(t, <-result, election.ErrHeld)
		require.Equal(t, 2*time.Second, time.Since(began), "two creates, and no wait")
		require.Equal(t, []string{"a"}, s.ids())
		require.Equal(t, election.ReasonResigned, c.soFar().ends[0].Reason, "no work has finished")
		require.Equal(t, "get hold ok", c.asked()[0])
		_, err := store.Get(t.Context(), b.name)
		require.ErrorIs(t, err, kv.ErrVacant, "the safe is given up")
		_, err = store.Get(t.Context(), b.name+":hold")
		require.NoError(t, err, "the hold is not")
	})
}

func TestALeaderThatDiesInItsHoldIsSucceededWhenThatIsOver(t *testing.T) {
	inHold(t, func(t *testing.T, store *memkv.Store, b *ballot, s *shifts) {
		mortal := kvfault.Wrap(store)
		ctx, stop := context.WithCancel(t.Context())
		died := make(chan error)
		go func() { died <- b.candidate(mortal.Store, "a", holding).Run(ctx, s.work("a", time.Hour)) }()
		synctest.Wait()
		done := make(chan error)
		b.runWith(b.candidate(store, "b", holding), "b", func(ctx context.Context, term *election.Term) error {
			defer close(done)
			return s.work("b", 0)(ctx, term)
		})
		time.Sleep(hold / 2)
		mortal.On().DropRequests()
		stop()
		require.ErrorIs(t, <-died, context.Canceled)
		time.Sleep(2 * ttl)
		leader, err := election.Current(t.Context(), store, b.name)
		require.NoError(t, err)
		require.Equal(t, "b", leader.ID, "it leads, and waits")
		require.Equal(t, []string{"a"}, s.ids())
		<-done
		s.apart(2)
	})
}

// Whatever befalls the create of the hold, no work begins without one.
func TestNoWorkBeginsBeforeTheHoldIsKnownToBeThere(t *testing.T) {
	for what, fault := range map[string]func(kvfault.Faults){
		"lost requests":          kvfault.Faults.DropRequests,
		"lost replies":           kvfault.Faults.DropReplies,
		"errors":                 func(f kvfault.Faults) { f.Fail(errStore) },
		"errors after the write": func(f kvfault.Faults) { f.FailReplies(errStore) },
		"late creates":           kvfault.Faults.Withhold,
		"slow answers":           func(f kvfault.Faults) { f.DelayReplies(ttl / 4) },
		"none":                   func(kvfault.Faults) {},
	} {
		for _, try := range []bool{false, true} {
			t.Run(what+map[bool]string{true: ", one attempt"}[try], func(t *testing.T) {
				inHold(t, func(t *testing.T, store *memkv.Store, b *ballot, s *shifts) {
					faults := kvfault.Wrap(store)
					holds := &beside{Store: store, holds: faults.Store}
					fault(faults.On(kvfault.Create))
					heal := time.AfterFunc(5*ttl, func() {
						faults.Heal()
						faults.Deliver(t.Context())
					})
					defer heal.Stop()
					run := b.candidate(holds, "a", holding).Run
					if try {
						run = b.candidate(holds, "a", holding).TryRun
					}
					err := run(t.Context(), func(ctx context.Context, term *election.Term) error {
						rec, err := store.Get(ctx, b.name+":hold")
						require.NoError(t, err, "work begins without a hold")
						require.True(t, strings.HasPrefix(rec.Signature, "a/"))
						return s.work("a", 0)(ctx, term)
					})
					if err != nil {
						require.True(t, try, "only one attempt may fail: %v", err)
						require.NotErrorIs(t, err, election.ErrHeld)
						require.Empty(t, s.ids())
						_, err = store.Get(t.Context(), b.name)
						require.ErrorIs(t, err, kv.ErrVacant, "the safe is given up")
						_, err = store.Get(t.Context(), b.name+":hold")
						require.ErrorIs(t, err, kv.ErrVacant, "no work has begun")
						return
					}
					require.NoError(t, b.candidate(store, "b", holding).Run(t.Context(), s.work("b", 0)))
					s.apart(2)
				})
			})
		}
	}
}

// beside is a store in which the holds' safes are another's.
type beside struct {
	kv.Store
	holds     kv.Store
	refreshed func() // told of each refresh of a hold, if not nil
}

func (s *beside) Refresh(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	if s.refreshed != nil && strings.HasSuffix(name, ":hold") {
		s.refreshed()
	}
	return s.Store.Refresh(ctx, name, rec)
}

func (s *beside) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	if strings.HasSuffix(name, ":hold") {
		return s.holds.Create(ctx, name, rec)
	}
	return s.Store.Create(ctx, name, rec)
}

func TestNoWorkBeginsInATermThatEndedWhileTheHoldWasMade(t *testing.T) {
	inHold(t, func(t *testing.T, store *memkv.Store, b *ballot, s *shifts) {
		faults := kvfault.Wrap(store)
		faults.On(kvfault.Create).DropReplies()
		began := time.Now()
		b.runWith(b.candidate(&beside{Store: store, holds: faults.Store}, "a", holding), "a", s.work("a", 0))
		time.Sleep(time.Second)
		rec, err := store.Get(t.Context(), b.name)
		require.NoError(t, err)
		require.NoError(t, store.Delete(t.Context(), b.name, rec), "an operator removes the record")
		time.Sleep(ttl / 3)
		faults.Heal()
		time.Sleep(ttl)
		require.Len(t, s.begins(), 1, "elected anew, it makes a hold of its own")
		require.Greater(t, s.begins()[0].Sub(began), time.Second)
		h, err := election.CurrentHold(t.Context(), store, b.name)
		require.NoError(t, err)
		require.Equal(t, "a", h.ID)
	})
}

// The request for the hold was so long on its way that the hold would end too soon.
func TestAHoldThatCameLateIsRefreshedBeforeTheWorkBegins(t *testing.T) {
	inHold(t, func(t *testing.T, store *memkv.Store, b *ballot, s *shifts) {
		faults, refreshes := kvfault.Wrap(store), 0
		faults.On(kvfault.Create).Hang()
		time.AfterFunc(ttl/2, faults.Heal)
		holds := &beside{Store: store, holds: faults.Store, refreshed: func() { refreshes++ }}
		began := time.Now()
		require.NoError(t, b.candidate(holds, "a", holding).Run(t.Context(), s.work("a", 0)))
		require.GreaterOrEqual(t, time.Since(began), ttl/2)
		require.Equal(t, 1, refreshes)
		s.apart(1)
	})
}

// What is known to be on its way is waited for.
func TestARunThatEndsWhileItsHoldIsOnItsWayRemovesIt(t *testing.T) {
	inHold(t, func(t *testing.T, store *memkv.Store, b *ballot, s *shifts) {
		faults := kvfault.Wrap(store)
		faults.On(kvfault.Create).Withhold()
		stop := b.runWith(b.candidate(&beside{Store: store, holds: faults.Store}, "a", holding), "a", s.work("a", 0))
		time.Sleep(time.Second)
		time.AfterFunc(time.Second, func() { faults.Deliver(t.Context()) })
		require.ErrorIs(t, stop(), context.Canceled)
		time.Sleep(2 * time.Second)
		require.Empty(t, s.ids())
		_, err := store.Get(t.Context(), b.name+":hold")
		require.ErrorIs(t, err, kv.ErrVacant)
		_, err = store.Get(t.Context(), b.name)
		require.ErrorIs(t, err, kv.ErrVacant)
	})
}

func TestACandidateThatWaitsForAHoldDoesNotLeadYet(t *testing.T) {
	inHold(t, func(t *testing.T, store *memkv.Store, b *ballot, s *shifts) {
		require.NoError(t, b.candidate(store, "a", holding).Run(t.Context(), s.work("a", 0)))
		c := b.candidate(store, "b", holding)
		b.runWith(c, "b", s.work("b", hold))
		time.Sleep(hold / 2)
		leader, err := election.Current(t.Context(), store, b.name)
		require.NoError(t, err)
		require.Equal(t, "b", leader.ID)
		require.False(t, c.IsLeader())
		time.Sleep(hold)
		require.True(t, c.IsLeader())
		s.apart(2)
	})
}

func TestACampaignThatEndsInAHoldReturnsWhoseItIsAndLeavesNothing(t *testing.T) {
	inHold(t, func(t *testing.T, store *memkv.Store, b *ballot, s *shifts) {
		require.NoError(t, b.candidate(store, "a", holding).Run(t.Context(), s.work("a", 0)))
		kept, err := store.Get(t.Context(), b.name+":hold")
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), ttl)
		defer cancel()
		_, err = b.candidate(store, "b", holding).Campaign(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, election.ErrHeld)
		require.ErrorContains(t, err, `"a" has closed the election`)
		_, err = store.Get(t.Context(), b.name)
		require.ErrorIs(t, err, kv.ErrVacant)
		rec, err := store.Get(t.Context(), b.name+":hold")
		require.NoError(t, err)
		require.Equal(t, kept, rec)
	})
}

func TestWaitingForAHoldCostsNoRequestsButTheLeadersOwn(t *testing.T) {
	inHold(t, func(t *testing.T, store *memkv.Store, b *ballot, s *shifts) {
		require.NoError(t, b.candidate(store, "a", holding).Run(t.Context(), s.work("a", 0)))
		faults := kvfault.Wrap(store)
		b.runWith(b.candidate(faults.Store, "b", holding), "b", s.work("b", 0))
		time.Sleep(hold - time.Second)
		require.Equal(t, 1, faults.Calls(kvfault.Get))
		require.Equal(t, 2, faults.Calls(kvfault.Create), "the leader's record, and the hold")
		require.Equal(t, 2+1, faults.Calls(kvfault.Watch), "the leader's, its heir's, and that of the hold")
	})
}

func TestAForeignRecordWhereHoldsBelongIsRespected(t *testing.T) {
	inHold(t, func(t *testing.T, store *memkv.Store, b *ballot, s *shifts) {
		store.Put(b.name+":hold", "somebody's")
		err := b.candidate(store, "a", holding).TryRun(t.Context(), s.work("a", 0))
		require.ErrorIs(t, err, election.ErrHeld)
		b.runWith(b.candidate(store, "a", holding), "a", s.work("a", 0))
		time.Sleep(10 * hold)
		require.Empty(t, s.ids())
		rec, err := store.Get(t.Context(), b.name+":hold")
		require.NoError(t, err)
		require.Equal(t, "somebody's", rec.Value)
		store.Remove(b.name + ":hold")
		time.Sleep(time.Second)
		require.Equal(t, []string{"a"}, s.ids())
	})
}

func TestAnHeirThatTakesOverInAHoldWaits(t *testing.T) {
	inHold(t, func(t *testing.T, store *memkv.Store, b *ballot, s *shifts) {
		first := make(chan error)
		go func() {
			first <- b.candidate(store, "a", holding, firstCome).Run(t.Context(), s.work("a", 2*ttl))
		}()
		time.Sleep(ttl)
		require.NoError(t, b.candidate(store, "b", holding, firstCome).Run(t.Context(), s.work("b", 0)))
		require.NoError(t, <-first)
		s.apart(2)
	})
}

func TestTheHoldIsShownWhileItLasts(t *testing.T) {
	inHold(t, func(t *testing.T, store *memkv.Store, b *ballot, s *shifts) {
		_, err := election.CurrentHold(t.Context(), store, b.name)
		require.ErrorIs(t, err, election.ErrNoHold)
		began := time.Now()
		require.NoError(t, b.candidate(store, "a", holding).Run(t.Context(), s.work("a", 0)))
		h, err := election.CurrentHold(t.Context(), store, b.name)
		require.NoError(t, err)
		require.Equal(t, "a", h.ID)
		require.WithinDuration(t, began, h.Since, time.Second)
		require.WithinDuration(t, began.Add(hold), h.Until, ttl/2)
		time.Sleep(hold + ttl/2)
		_, err = election.CurrentHold(t.Context(), store, b.name)
		require.ErrorIs(t, err, election.ErrNoHold)
	})
}

func TestAHoldThatTheStoreCannotKeepIsRefused(t *testing.T) {
	_, err := election.New(memkv.New(), "e", &election.Options{Hold: -1})
	require.ErrorContains(t, err, "hold -1ns is negative")
	_, err = election.New(limited{memkv.New()}, "e", &election.Options{Hold: 59 * time.Second})
	require.ErrorIs(t, err, kv.ErrInvalid)
	require.ErrorContains(t, err, "hold 59s, which takes a record with a TTL of 1m3.5s")
	_, err = election.New(memkv.New(), "e:hold", nil)
	require.ErrorContains(t, err, `ends with ":hold"`)
}

// limited is a store whose records live for a minute at most.
type limited struct{ *memkv.Store }

func (s limited) Lifetime(ttl time.Duration) (kv.Lifetime, error) {
	if ttl > time.Minute {
		return kv.Lifetime{}, kv.ErrInvalid
	}
	return s.Store.Lifetime(ttl)
}

func TestTryRunSaysHowItsTermEnded(t *testing.T) {
	inHold(t, func(t *testing.T, store *memkv.Store, b *ballot, s *shifts) {
		mine := errors.New("mine")
		require.ErrorIs(t, b.candidate(store, "a").TryRun(t.Context(), func(context.Context, *election.Term) error { return mine }), mine)
		err := b.candidate(store, "a").TryRun(t.Context(), func(ctx context.Context, _ *election.Term) error {
			store.Remove(b.name)
			<-ctx.Done()
			return mine
		})
		require.ErrorIs(t, err, election.ErrLost)
		require.NotErrorIs(t, err, mine)
		err = b.candidate(store, "a").TryRun(t.Context(), func(ctx context.Context, term *election.Term) error { return term.Resign(ctx) })
		require.ErrorIs(t, err, election.ErrResigned)
		ctx, cancel := context.WithCancelCause(t.Context())
		err = b.candidate(store, "a").TryRun(ctx, func(ctx context.Context, term *election.Term) error {
			cancel(mine)
			<-ctx.Done()
			_, err := store.Get(t.Context(), b.name)
			require.NoError(t, err, "kept until the work has returned")
			return nil
		})
		require.ErrorIs(t, err, mine)
		_, err = store.Get(t.Context(), b.name)
		require.ErrorIs(t, err, kv.ErrVacant)
		require.ErrorContains(t, b.candidate(store, "a").TryRun(t.Context(), nil), "lead is nil")
		b.run(b.candidate(store, "a"), "a")
		synctest.Wait()
		err = b.candidate(store, "b").TryRun(t.Context(), s.work("b", 0))
		require.ErrorIs(t, err, election.ErrHeld)
		require.ErrorContains(t, err, `the safe is held: leader "a", token `)
	})
}

func TestAHoldWhoseCreateComesLateIsRemovedIfNoWorkHasBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		faults := kvfault.Wrap(store)
		view := heldApart{store, faults}
		faults.On(kvfault.Create).Withhold()
		c := b.candidate(view, "a", func(o *election.Options) { o.Hold = time.Hour })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		time.AfterFunc(ttl/3+ttl/20, func() { faults.Deliver(t.Context()) }) // when the create was given up
		err := c.TryRun(ctx, func(context.Context, *election.Term) error { panic("no work may begin") })
		require.Error(t, err)
		time.Sleep(ttl)
		_, err = election.CurrentHold(t.Context(), store, b.name)
		require.ErrorIs(t, err, election.ErrNoHold)
	})
}

// A heldApart store has faults at the safe of holds alone.
type heldApart struct {
	kv.Store
	holds *kvfault.Link
}

func (s heldApart) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	if strings.HasSuffix(name, ":hold") {
		return s.holds.Store.Create(ctx, name, rec)
	}
	return s.Store.Create(ctx, name, rec)
}

// The store is away before the hold's create is answered, for longer than the term
// lasts: a hold is left under which no work began.
func TestACandidateIsNotKeptOutByAHoldThatItLeftBehind(t *testing.T) {
	inHold(t, func(t *testing.T, store *memkv.Store, b *ballot, s *shifts) {
		faults := kvfault.Wrap(store)
		away := &cutAfterHold{Store: faults.Store, cut: func() { faults.On().DropRequests() }}
		b.runWith(b.candidate(away, "a", holding), "a", s.work("a", hold))
		time.Sleep(3 * ttl)
		left, err := store.Get(t.Context(), b.name+":hold")
		require.NoError(t, err)
		faults.Heal()
		began := time.Now()
		time.Sleep(2 * ttl)
		require.Equal(t, []string{"a"}, s.ids(), "it waits for a hold under which nothing was done")
		require.WithinRange(t, s.begins()[0], began, began.Add(2*ttl))
		rec, err := store.Get(t.Context(), b.name+":hold")
		require.NoError(t, err)
		require.NotEqual(t, left.Signature, rec.Signature)
		require.NoError(t, b.candidate(store, "b", holding).Run(t.Context(), s.work("b", 0)))
		s.apart(2)
	})
}

// cutAfterHold is a store that is cut off before it answers the first create of a hold.
type cutAfterHold struct {
	kv.Store
	cut  func()
	once sync.Once
}

func (s *cutAfterHold) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	rec, err := s.Store.Create(ctx, name, rec)
	if strings.HasSuffix(name, ":hold") {
		s.once.Do(func() {
			s.cut()
			rec, err = kv.Record{}, errStore
		})
	}
	return rec, err
}
