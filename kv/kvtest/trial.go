package kvtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

const (
	// patience is what a busy machine may add to anything that is owed.
	patience = 15 * time.Second
	// promptly is how soon a call returns whose context has ended.
	promptly = 15 * time.Second
	// ample is a TTL that no case outlasts.
	ample = 5 * time.Minute
)

// A trial is one case at work on one backend.
type trial struct {
	testing.TB
	b   Backend
	ttl time.Duration
	ctx context.Context
	// s is the first client; most cases need no other.
	s kv.Store
}

func newTrial(t testing.TB, b Backend) *trial {
	t.Helper()
	require.NotNil(t, b.Open, "a Backend needs Open")
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	ttl := b.TTL
	if ttl == 0 {
		ttl = time.Second
	}
	tr := &trial{TB: t, b: b, ttl: ttl, ctx: ctx, s: b.Open(t)}
	tr.ttl *= time.Duration(tr.slowness())
	return tr
}

// slowness returns by how much to lengthen the TTL, so that a case that has to do
// something with a record before it fades can, on a machine that is busy: 1 where a
// request takes less than a fiftieth of the TTL, and 4 at most.
func (t *trial) slowness() int64 {
	start := time.Now()
	_, _ = t.s.Get(t.ctx, "kvtest-"+rand.Text()) // what it should return, a case says
	return 1 + min(int64(50*time.Since(start)/t.ttl), 3)
}

// open returns another client of the store.
func (t *trial) open() kv.Store {
	t.Helper()
	return t.b.Open(t)
}

// name returns the name of a safe that nobody has used before, and empties the
// safe when the case is over.
func (t *trial) name() string {
	name := "kvtest-" + rand.Text()
	t.cleanLater(name)
	return name
}

// cleanLater empties the safe when the case is over.
func (t *trial) cleanLater(name string) {
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		rec, err := t.s.Get(ctx, name)
		if err == nil && !rec.Foreign {
			err = t.s.Delete(ctx, name, rec)
		}
		if err != nil && !errors.Is(err, kv.ErrVacant) && !errors.Is(err, kv.ErrStale) {
			t.Logf("cleaning up %.80q: %v", name, err)
		}
		if t.b.Remove != nil {
			t.b.Remove(t, name)
		}
	})
}

// signed returns what a new campaign would write, with a TTL that outlasts the
// case.
func (t *trial) signed(value string) kv.Record {
	return kv.Record{Signature: "sig-" + rand.Text(), Value: value, TTL: ample}
}

// mortal returns what a new campaign would write, with the TTL of the backend.
func (t *trial) mortal(value string) kv.Record {
	rec := t.signed(value)
	rec.TTL = t.ttl
	return rec
}

// held returns a new safe and the record in it, which outlasts the case.
func (t *trial) held() (name string, rec kv.Record) {
	t.Helper()
	name = t.name()
	return name, t.create(t.s, name, t.signed("held"))
}

func (t *trial) create(s kv.Store, name string, rec kv.Record) kv.Record {
	t.Helper()
	got, err := s.Create(t.ctx, name, rec)
	require.NoError(t, err, "create %.80q", name)
	return got
}

// succeed creates a record in a safe that had an owner before. The store may
// keep it closed for a while.
func (t *trial) succeed(s kv.Store, name string, rec kv.Record) kv.Record {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(t.ttl / 50) {
		got, err := s.Create(t.ctx, name, rec)
		if errors.Is(err, kv.ErrHeld) && time.Now().Before(deadline) {
			continue
		}
		require.NoError(t, err, "create %.80q after its last owner", name)
		return got
	}
}

func (t *trial) get(s kv.Store, name string) kv.Record {
	t.Helper()
	rec, err := s.Get(t.ctx, name)
	require.NoError(t, err, "get %.80q", name)
	return rec
}

func (t *trial) refresh(s kv.Store, name string, rec kv.Record) kv.Record {
	t.Helper()
	got, err := s.Refresh(t.ctx, name, rec)
	require.NoError(t, err, "refresh %.80q", name)
	return got
}

func (t *trial) swap(s kv.Store, name string, old, next kv.Record) kv.Record {
	t.Helper()
	got, err := s.Swap(t.ctx, name, old, next)
	require.NoError(t, err, "swap %.80q", name)
	return got
}

// publish swaps in another value under the same signature.
func (t *trial) publish(s kv.Store, name string, rec kv.Record, value string) kv.Record {
	t.Helper()
	next := rec
	next.Value = value
	return t.swap(s, name, rec, next)
}

func (t *trial) delete(s kv.Store, name string, rec kv.Record) {
	t.Helper()
	require.NoError(t, s.Delete(t.ctx, name, rec), "delete %.80q", name)
}

// holds requires that the safe holds exactly rec.
func (t *trial) holds(name string, rec kv.Record) {
	t.Helper()
	got := t.get(t.s, name)
	if got != rec {
		require.FailNow(t, "the safe holds another record", "%.80q:\nwant %s\ngot  %s", name, describe(rec), describe(got))
	}
}

// describe returns a record as text that a failure can print.
func describe(rec kv.Record) string {
	for _, p := range []part{value, note} {
		if text := *p.in(&rec); len(text) > 100 {
			rec = p.of(rec, fmt.Sprintf("%s… (%d bytes)", text[:100], len(text)))
		}
	}
	return fmt.Sprintf("%+v", rec)
}

// vacant requires that the safe holds nothing.
func (t *trial) vacant(name string) {
	t.Helper()
	rec, err := t.s.Get(t.ctx, name)
	require.ErrorIs(t, err, kv.ErrVacant, "get %.80q", name)
	require.Zero(t, rec, "what comes with ErrVacant")
}

// disowned requires that rec is refused with ErrStale by each operation of an
// owner.
func (t *trial) disowned(s kv.Store, name string, rec kv.Record) {
	t.Helper()
	got, err := s.Refresh(t.ctx, name, rec)
	require.ErrorIs(t, err, kv.ErrStale, "refresh; it returned %v", got)
	next := rec
	next.Value += " changed"
	got, err = s.Swap(t.ctx, name, rec, next)
	require.ErrorIs(t, err, kv.ErrStale, "publish; it returned %v", got)
	got, err = s.Swap(t.ctx, name, rec, t.signed("taken over"))
	require.ErrorIs(t, err, kv.ErrStale, "hand-over; it returned %v", got)
	require.ErrorIs(t, s.Delete(t.ctx, name, rec), kv.ErrStale, "delete")
}

func (t *trial) lifetime(ttl time.Duration) kv.Lifetime {
	t.Helper()
	life, err := t.s.Lifetime(ttl)
	require.NoError(t, err, "lifetime of %v", ttl)
	return life
}

// earliest returns when a record may fade at the earliest that was last written
// or refreshed by a call that began at start. Clocks that run at rates within
// 0.1 % of each other are equal.
func earliest(start time.Time, ttl time.Duration) time.Time {
	return start.Add(ttl - ttl/500)
}

// fades looks at the safe until it is vacant, and requires that this happens
// neither before rec's TTL has passed since start, nor too late. Meanwhile runs
// between two looks, if it is not nil.
func (t *trial) fades(name string, rec kv.Record, start time.Time, meanwhile func()) {
	t.Helper()
	deadline := time.Now().Add(t.lifetime(rec.TTL).Max + patience)
	for {
		got, err := t.s.Get(t.ctx, name)
		now := time.Now()
		if errors.Is(err, kv.ErrVacant) {
			require.False(t, now.Before(earliest(start, rec.TTL)),
				"the record faded after %v, before its TTL of %v", now.Sub(start), rec.TTL)
			return
		}
		require.NoError(t, err, "get %.80q", name)
		require.Equal(t, rec.Signature, got.Signature, "the signature in %.80q", name)
		require.True(t, now.Before(deadline),
			"the record has not faded after %v; its TTL was %v", now.Sub(start), rec.TTL)
		if meanwhile != nil {
			meanwhile()
		}
		time.Sleep(t.ttl / 50)
	}
}
