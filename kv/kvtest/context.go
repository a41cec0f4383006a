package kvtest

import (
	"context"
	"errors"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

const contextBounds = "Its context bounds it: when the context ends it returns promptly, with an error for which errors.Is reports the context's error or cause, and leaves no goroutine behind."

var contextCases = []Case{
	{Name: "an operation whose context was cancelled returns promptly", Clause: contextBounds, check: anOperationWhoseContextWasCancelledReturns},
	{Name: "an operation whose deadline has passed returns promptly", Clause: contextBounds, check: anOperationWhoseDeadlineHasPassedReturns},
	{Name: "an operation tells of the cause or the error of its context", Clause: contextBounds, check: anOperationTellsOfItsContextsEnd},
	{Name: "what a cancelled context has left behind can be used", Clause: contextBounds + " Any number of goroutines may use a Store at the same time.", check: aCancelledCallDoesNotSpoilTheStore},
	{Name: "a create that was cut short can be adopted", Clause: "After any other error of a writing operation, including the error of its own context, the write may or may not have happened, and may still happen later.", check: aCreateThatWasCutShortCanBeAdopted},
	{Name: "operations leave no goroutines behind", Clause: contextBounds, check: operationsLeaveNoGoroutinesBehind, alone: true},
}

// operations calls each operation with ctx, once on a safe that rec holds and
// once on a vacant one, and returns their errors.
func (t *trial) operations(ctx context.Context, name string, rec kv.Record) map[string]error {
	errs := map[string]error{}
	next := rec
	next.Value = "changed"
	_, errs["create"] = t.s.Create(ctx, t.name(), t.signed("v"))
	_, errs["create again"] = t.s.Create(ctx, name, t.signed("v"))
	_, errs["publish"] = t.s.Swap(ctx, name, rec, next)
	_, errs["hand over"] = t.s.Swap(ctx, name, rec, t.signed("v"))
	_, errs["refresh"] = t.s.Refresh(ctx, name, rec)
	_, errs["get"] = t.s.Get(ctx, name)
	_, errs["get nothing"] = t.s.Get(ctx, t.name())
	errs["delete"] = t.s.Delete(ctx, name, rec)
	for _, err := range t.s.Watch(ctx, name) {
		errs["watch"] = err
	}
	return errs
}

// bounded requires that each operation ends promptly with one of the errors,
// and that none of them claims to know an outcome.
func (t *trial) bounded(ctx context.Context, name string, rec kv.Record, want ...error) {
	t.Helper()
	start := time.Now()
	for op, err := range t.operations(ctx, name, rec) {
		told := false
		for _, w := range want {
			told = told || errors.Is(err, w)
		}
		require.True(t, told, "%s returned %v, want %v", op, err, want)
		for _, definite := range []error{kv.ErrVacant, kv.ErrHeld, kv.ErrStale, kv.ErrInvalid} {
			require.NotErrorIs(t, err, definite, op)
		}
	}
	require.Less(t, time.Since(start), promptly)
}

func anOperationWhoseContextWasCancelledReturns(t *trial) {
	name, rec := t.held()
	ctx, cancel := context.WithCancel(t.ctx)
	cancel()
	t.bounded(ctx, name, rec, context.Canceled)
}

func anOperationWhoseDeadlineHasPassedReturns(t *trial) {
	name, rec := t.held()
	ctx, cancel := context.WithDeadline(t.ctx, time.Now().Add(-time.Second))
	defer cancel()
	t.bounded(ctx, name, rec, context.DeadlineExceeded)
}

func anOperationTellsOfItsContextsEnd(t *trial) {
	why := errors.New("the caller thought better of it")
	name, rec := t.held()
	ctx, cancel := context.WithCancelCause(t.ctx)
	cancel(why)
	t.bounded(ctx, name, rec, why, context.Canceled)
}

// A call is cut at a moment that nobody chose; the next one works.
func aCancelledCallDoesNotSpoilTheStore(t *trial) {
	name, rec := t.held()
	for i := range 40 {
		ctx, cancel := context.WithCancel(t.ctx)
		timer := time.AfterFunc(time.Duration(i)*50*time.Microsecond, cancel)
		_, err := t.s.Refresh(ctx, name, rec)
		timer.Stop()
		cancel()
		if err != nil {
			require.ErrorIs(t, err, context.Canceled)
		}
		t.refresh(t.s, name, rec)
		t.holds(name, rec)
	}
}

// What Get finds of the create is a whole record, and its owner's.
func aCreateThatWasCutShortCanBeAdopted(t *trial) {
	for i := range 30 {
		name, rec := t.name(), t.signed("v")
		ctx, cancel := context.WithCancel(t.ctx)
		timer := time.AfterFunc(time.Duration(i)*100*time.Microsecond, cancel)
		_, err := t.s.Create(ctx, name, rec)
		timer.Stop()
		cancel()
		if err != nil {
			require.ErrorIs(t, err, context.Canceled)
		}
		got, err := t.s.Get(t.ctx, name)
		if errors.Is(err, kv.ErrVacant) {
			continue
		}
		require.NoError(t, err)
		require.Equal(t, rec.Signature, got.Signature)
		require.Equal(t, rec.Value, got.Value)
		require.GreaterOrEqual(t, got.TTL, rec.TTL)
		t.refresh(t.s, name, got)
		t.delete(t.s, name, got)
	}
}

func operationsLeaveNoGoroutinesBehind(t *trial) {
	const rounds = 20
	cancelled, cancel := context.WithCancel(t.ctx)
	cancel()
	t.cycle(cancelled)
	before := goroutines()
	for range rounds {
		t.cycle(cancelled)
	}
	t.settles(before, rounds/2)
}

// cycle runs a record through its life, and each operation with a context that
// has ended.
func (t *trial) cycle(ended context.Context) {
	t.Helper()
	name, rec := t.held()
	t.operations(ended, name, rec)
	rec = t.publish(t.s, name, t.refresh(t.s, name, rec), "changed")
	rec = t.swap(t.s, name, rec, t.signed("taken over"))
	t.delete(t.s, name, rec)
}
