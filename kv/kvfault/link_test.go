package kvfault_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/internal/views"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvfault"
)

const (
	name    = "safe"
	ttl     = 10 * time.Second
	patient = time.Second
)

var errDown = errors.New("the server is down")

// bench is a store in memory, seen directly and through faults, with a record in
// it.
type bench struct {
	*testing.T
	store  *memkv.Store
	faults *kvfault.Link
	rec    kv.Record
}

// inFakeTime runs a test in a bubble.
func inFakeTime(t *testing.T, test func(*bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		store := memkv.New()
		rec, err := store.Create(t.Context(), name, kv.Record{Signature: "me", Value: "v", TTL: ttl})
		require.NoError(t, err)
		test(&bench{T: t, store: store, faults: kvfault.Wrap(store), rec: rec})
	})
}

// calls returns each operation but the watch, and what it does to the safe if it
// is carried out.
func (b *bench) calls() map[kvfault.Op]func(context.Context) error {
	next := b.rec
	next.Value = "changed"
	return map[kvfault.Op]func(context.Context) error{
		kvfault.Create: func(ctx context.Context) error {
			_, err := b.faults.Store.Create(ctx, "another", kv.Record{Signature: "me", TTL: ttl})
			return err
		},
		kvfault.Swap:    func(ctx context.Context) error { _, err := b.faults.Store.Swap(ctx, name, b.rec, next); return err },
		kvfault.Refresh: func(ctx context.Context) error { _, err := b.faults.Store.Refresh(ctx, name, b.rec); return err },
		kvfault.Delete:  func(ctx context.Context) error { return b.faults.Store.Delete(ctx, name, b.rec) },
		kvfault.Get:     func(ctx context.Context) error { _, err := b.faults.Store.Get(ctx, name); return err },
	}
}

// each runs a test for each operation, on a bench of its own.
func each(t *testing.T, test func(b *bench, op kvfault.Op, call func(context.Context) error)) {
	t.Helper()
	for op := range kvfault.Watch {
		t.Run(op.String(), func(t *testing.T) {
			inFakeTime(t, func(b *bench) { test(b, op, b.calls()[op]) })
		})
	}
}

// waits requires that the call ends with its context and not before.
func (b *bench) waits(call func(context.Context) error) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), patient)
	defer cancel()
	start := time.Now()
	err := call(ctx)
	require.ErrorIs(b, err, context.DeadlineExceeded)
	for _, definite := range []error{kv.ErrVacant, kv.ErrHeld, kv.ErrStale, kv.ErrInvalid} {
		require.NotErrorIs(b, err, definite)
	}
	require.Equal(b, patient, time.Since(start))
}

// touched reports whether a write has reached the store, a refresh not counted.
func (b *bench) touched() bool {
	rec, err := b.store.Get(b.Context(), name)
	_, another := b.store.Get(b.Context(), "another")
	return err != nil || rec != b.rec || another == nil
}

func writes(op kvfault.Op) bool {
	return op == kvfault.Create || op == kvfault.Swap || op == kvfault.Delete
}

func TestADroppedRequestNeverReachesTheStore(t *testing.T) {
	each(t, func(b *bench, op kvfault.Op, call func(context.Context) error) {
		b.faults.On(op).DropRequests()
		b.waits(call)
		require.False(t, b.touched())
		b.faults.Heal()
		require.False(t, b.touched())
		require.NoError(t, call(b.Context()))
		require.Equal(t, writes(op), b.touched())
	})
}

func TestADroppedRefreshLetsTheRecordFade(t *testing.T) {
	inFakeTime(t, func(b *bench) {
		time.Sleep(ttl - patient)
		b.faults.On(kvfault.Refresh).DropRequests()
		b.waits(b.calls()[kvfault.Refresh])
		_, err := b.store.Get(b.Context(), name)
		require.ErrorIs(t, err, kv.ErrVacant)
	})
}

func TestTheRequestOfADroppedReplyIsCarriedOut(t *testing.T) {
	each(t, func(b *bench, op kvfault.Op, call func(context.Context) error) {
		b.faults.On(op).DropReplies()
		b.waits(call)
		require.Equal(t, writes(op), b.touched())
	})
}

func TestARefreshWhoseReplyIsDroppedExtendsTheRecord(t *testing.T) {
	inFakeTime(t, func(b *bench) {
		time.Sleep(ttl - patient)
		b.faults.On(kvfault.Refresh).DropReplies()
		b.waits(b.calls()[kvfault.Refresh])
		_, err := b.store.Get(b.Context(), name)
		require.NoError(t, err)
	})
}

func TestADropTellsOfTheContextsCause(t *testing.T) {
	inFakeTime(t, func(b *bench) {
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(b.Context())
		b.faults.On().DropRequests()
		time.AfterFunc(patient, func() { cancel(why) })
		_, err := b.faults.Store.Get(ctx, name)
		require.ErrorIs(t, err, why)
	})
}

func TestAFailureComesAtOnceAndWithoutTheStore(t *testing.T) {
	each(t, func(b *bench, op kvfault.Op, call func(context.Context) error) {
		b.faults.On(op).Fail(errDown)
		for range 3 {
			require.ErrorIs(t, call(b.Context()), errDown)
		}
		require.False(t, b.touched())
		b.faults.On(op).Heal()
		require.NoError(t, call(b.Context()))
	})
}

func TestAFailedReplyComesAfterTheWrite(t *testing.T) {
	each(t, func(b *bench, op kvfault.Op, call func(context.Context) error) {
		b.faults.On(op).FailReplies(errDown)
		require.ErrorIs(t, call(b.Context()), errDown)
		require.Equal(t, writes(op), b.touched())
	})
}

func TestNextStrikesThatManyCalls(t *testing.T) {
	inFakeTime(t, func(b *bench) {
		b.faults.On(kvfault.Get, kvfault.Refresh).Next(2).Fail(errDown)
		get, refresh := b.calls()[kvfault.Get], b.calls()[kvfault.Refresh]
		require.ErrorIs(t, get(b.Context()), errDown)
		require.ErrorIs(t, get(b.Context()), errDown)
		require.NoError(t, get(b.Context()))
		require.ErrorIs(t, refresh(b.Context()), errDown, "each operation counts for itself")
		require.ErrorIs(t, refresh(b.Context()), errDown)
		require.NoError(t, refresh(b.Context()))
	})
}

func TestAFaultStrikesNoOtherOperation(t *testing.T) {
	each(t, func(b *bench, op kvfault.Op, call func(context.Context) error) {
		b.faults.On().Fail(errDown)
		b.faults.On(op).Heal()
		require.NoError(t, call(b.Context()))
		for other, call := range b.calls() {
			if other != op {
				require.ErrorIs(t, call(b.Context()), errDown, other)
			}
		}
	})
}

func TestAHungCallIgnoresItsContextUntilItIsReleased(t *testing.T) {
	each(t, func(b *bench, op kvfault.Op, call func(context.Context) error) {
		b.faults.On(op).Hang()
		ctx, cancel := context.WithTimeout(b.Context(), patient)
		defer cancel()
		start := time.Now()
		time.AfterFunc(5*patient, b.faults.Heal)
		require.NoError(t, call(ctx))
		require.Equal(t, 5*patient, time.Since(start))
		require.Equal(t, writes(op), b.touched())
	})
}

func TestOneHungCallDoesNotBlockOthers(t *testing.T) {
	inFakeTime(t, func(b *bench) {
		get := b.calls()[kvfault.Get]
		b.faults.On(kvfault.Get).Next(1).Hang()
		hung := make(chan error)
		go func() { hung <- get(b.Context()) }()
		synctest.Wait()
		require.NoError(t, get(b.Context()))
		require.Equal(t, 2, b.faults.Calls(kvfault.Get))
		b.faults.Heal()
		require.NoError(t, <-hung)
	})
}

func TestADelayedRequestIsCarriedOutLater(t *testing.T) {
	inFakeTime(t, func(b *bench) {
		b.faults.On(kvfault.Delete).DelayRequests(patient)
		time.AfterFunc(patient-1, func() { require.False(t, b.touched()) })
		start := time.Now()
		require.NoError(t, b.calls()[kvfault.Delete](b.Context()))
		require.Equal(t, patient, time.Since(start))
		require.True(t, b.touched())
	})
}

func TestADelayedReplyComesAfterTheWrite(t *testing.T) {
	inFakeTime(t, func(b *bench) {
		b.faults.On(kvfault.Delete).DelayReplies(patient)
		time.AfterFunc(1, func() { require.True(t, b.touched()) })
		start := time.Now()
		require.NoError(t, b.calls()[kvfault.Delete](b.Context()))
		require.Equal(t, patient, time.Since(start))
	})
}

func TestADelayEndsWithTheContext(t *testing.T) {
	each(t, func(b *bench, op kvfault.Op, call func(context.Context) error) {
		b.faults.On(op).DelayRequests(time.Hour)
		b.waits(call)
		require.False(t, b.touched())
		b.faults.On(op).DelayRequests(0)
		b.faults.On(op).DelayReplies(time.Hour)
		b.waits(call)
		require.Equal(t, writes(op), b.touched())
	})
}

func TestDelaysStayBesideOtherFaults(t *testing.T) {
	inFakeTime(t, func(b *bench) {
		b.faults.On().DelayRequests(patient)
		b.faults.On().Fail(errDown)
		start := time.Now()
		require.ErrorIs(t, b.calls()[kvfault.Get](b.Context()), errDown)
		require.Equal(t, patient, time.Since(start))
	})
}

func TestDelaysStayWhenAFaultRunsOut(t *testing.T) {
	inFakeTime(t, func(b *bench) {
		b.faults.On(kvfault.Get).DelayReplies(patient)
		b.faults.On(kvfault.Get).Next(1).Fail(errDown)
		require.ErrorIs(t, b.calls()[kvfault.Get](b.Context()), errDown)
		start := time.Now()
		require.NoError(t, b.calls()[kvfault.Get](b.Context()))
		require.Equal(t, patient, time.Since(start))
	})
}

func TestWhatIsWithheldArrivesAfterTheCallerHasGivenUp(t *testing.T) {
	each(t, func(b *bench, op kvfault.Op, call func(context.Context) error) {
		b.faults.On(op).Withhold()
		b.waits(call)
		b.faults.Heal()
		require.False(t, b.touched())
		require.Equal(t, []error{nil}, b.faults.Deliver(b.Context()))
		require.Equal(t, writes(op), b.touched())
		require.Empty(t, b.faults.Deliver(b.Context()), "delivered once")
	})
}

func TestWhatIsWithheldArrivesInOrderAndIsAnswered(t *testing.T) {
	inFakeTime(t, func(b *bench) {
		b.faults.On(kvfault.Delete, kvfault.Refresh).Withhold()
		ctx, cancel := context.WithCancel(b.Context())
		given := make(chan error)
		go func() { given <- b.calls()[kvfault.Delete](ctx) }()
		synctest.Wait()
		b.waits(b.calls()[kvfault.Refresh]) // called second, gives up first
		cancel()
		require.ErrorIs(t, <-given, context.Canceled)
		answers := b.faults.Deliver(b.Context())
		require.Len(t, answers, 2)
		require.NoError(t, answers[0])
		require.ErrorIs(t, answers[1], kv.ErrStale)
	})
}

func TestCallsAreCountedWhateverBecomesOfThem(t *testing.T) {
	each(t, func(b *bench, op kvfault.Op, call func(context.Context) error) {
		b.faults.On(op).Next(1).DropRequests()
		b.waits(call)
		b.faults.On(op).Next(1).Fail(errDown)
		require.Error(t, call(b.Context()))
		require.NoError(t, call(b.Context()))
		for other := range kvfault.Watch + 1 {
			want := 0
			if other == op {
				want = 3
			}
			require.Equal(t, want, b.faults.Calls(other), other)
		}
	})
}

func TestFaultsCanBeChangedWhileInUse(t *testing.T) {
	inFakeTime(t, func(b *bench) {
		done := make(chan struct{})
		for range 4 {
			go func() {
				for range 200 {
					ctx, cancel := context.WithTimeout(b.Context(), time.Millisecond)
					_, _ = b.faults.Store.Refresh(ctx, name, b.rec)
					cancel()
				}
				done <- struct{}{}
			}()
		}
		for range 200 {
			b.faults.On(kvfault.Refresh).Next(1).DropReplies()
			b.faults.On().DelayReplies(time.Microsecond)
			time.Sleep(100 * time.Microsecond)
			b.faults.Heal()
		}
		for range 4 {
			<-done
		}
		require.Equal(t, 800, b.faults.Calls(kvfault.Refresh))
		require.NoError(t, b.calls()[kvfault.Refresh](b.Context()))
	})
}

// handsOver returns a call that hands the safe over to an heir, if it is carried out.
func (b *bench) handsOver() func(context.Context) error {
	b.Helper()
	heir, err := b.store.Create(b.Context(), "heir's", kv.Record{Signature: "you", TTL: ttl})
	require.NoError(b, err)
	return func(ctx context.Context) error {
		_, err := b.faults.Store.(kv.HandOver).HandOver(ctx, name, b.rec, "heir's", heir, "note")
		return err
	}
}

func TestAHandOverInOneStepIsStruckAsOtherWritesAre(t *testing.T) {
	for fault, c := range map[string]struct {
		set       func(kvfault.Faults)
		waits     bool
		carriedOn bool
	}{
		"requests dropped": {set: kvfault.Faults.DropRequests, waits: true},
		"replies dropped":  {set: kvfault.Faults.DropReplies, waits: true, carriedOn: true},
		"withheld":         {set: kvfault.Faults.Withhold, waits: true},
		"fails":            {set: func(f kvfault.Faults) { f.Fail(errDown) }},
		"replies fail":     {set: func(f kvfault.Faults) { f.FailReplies(errDown) }, carriedOn: true},
	} {
		t.Run(fault, func(t *testing.T) {
			inFakeTime(t, func(b *bench) {
				call := b.handsOver()
				c.set(b.faults.On(kvfault.HandOver))
				if c.waits {
					b.waits(call)
				} else {
					require.ErrorIs(t, call(b.Context()), errDown)
				}
				require.Equal(t, c.carriedOn, b.touched())
				require.Equal(t, 1, b.faults.Calls(kvfault.HandOver))
				require.Zero(t, b.faults.Calls(kvfault.Swap))
				for _, err := range b.faults.Deliver(b.Context()) {
					require.NoError(t, err)
					require.True(t, b.touched())
				}
			})
		})
	}
}

// together refreshes many records one by one.
type together struct{ *memkv.Queue }

func (s together) RefreshAll(ctx context.Context, records []kv.Held, tell func(int, kv.Record, error)) {
	for i, r := range records {
		rec, err := s.Refresh(ctx, r.Name, r.Record)
		tell(i, rec, err)
	}
}

func TestABatchIsOneRequestWithOneAnswer(t *testing.T) {
	inFakeTime(t, func(b *bench) {
		b.faults = kvfault.Wrap(together{memkv.NewQueue()})
		refreshed := func(ctx context.Context) (errs [2]error) {
			b.faults.Store.(kv.Batch).RefreshAll(ctx, make([]kv.Held, 2), func(i int, _ kv.Record, err error) { errs[i] = err })
			return errs
		}
		for _, err := range refreshed(b.Context()) {
			require.ErrorIs(t, err, kv.ErrInvalid, "the store's own answer")
		}
		b.faults.On(kvfault.Refresh).Next(1).Fail(errDown)
		require.Equal(t, [2]error{errDown, errDown}, refreshed(b.Context()))
		b.faults.On(kvfault.Refresh).Next(1).DropReplies()
		b.waits(func(ctx context.Context) error {
			errs := refreshed(ctx)
			require.Equal(t, errs[0], errs[1])
			return errs[0]
		})
		require.Equal(t, 3, b.faults.Calls(kvfault.Refresh))
	})
}

func TestALinkShowsWhatTheStoreCanDo(t *testing.T) {
	whole := views.Of(together{memkv.NewQueue()})
	for _, can := range []views.Parts{
		{}, {Queue: whole.Queue}, {HandOver: whole.HandOver}, {Vacate: whole.Vacate}, {Batch: whole.Batch}, {Roster: whole.Roster}, whole,
	} {
		require.Equal(t, can.Has(), views.Of(kvfault.Wrap(can.With(memkv.New())).Store).Has())
	}
	_, board := kvfault.Wrap(memkv.New()).Store.(kv.Board)
	require.False(t, board, "each watch is struck by itself")
}

func TestOperationsHaveNames(t *testing.T) {
	var names []string
	for op := range kvfault.HandOver + 2 {
		names = append(names, op.String())
	}
	require.Equal(t, []string{"create", "swap", "refresh", "delete", "get", "watch", "join", "stay", "handover", "Op(9)"}, names)
}
