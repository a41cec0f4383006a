package observer_test

import (
	"context"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/observer"
	"github.com/electkv/election/internal/observer/memregister"
	"github.com/electkv/election/kv"
)

const ttl = 10 * time.Second

// A host is a process with a store of its own, and clocks of which one can be set.
type host struct {
	*observer.Store
	t     *testing.T
	leapt atomic.Int64 // the clock that goes on through a suspend is ahead by this
	slept atomic.Int64 // the other one is behind by this
}

func newHost(t *testing.T, reg observer.Register) *host {
	h := &host{t: t}
	start := time.Now()
	h.Store = observer.New(reg, &observer.Options{Clock: func() (mono, boot time.Duration) {
		return time.Since(start) - time.Duration(h.slept.Load()), time.Since(start) + time.Duration(h.leapt.Load())
	}})
	return h
}

func signed(signature string) kv.Record {
	return kv.Record{Signature: signature, Value: "of " + signature, Note: "note", TTL: ttl}
}

func (h *host) create(signature string) kv.Record {
	h.t.Helper()
	rec, err := h.Create(h.t.Context(), "safe", signed(signature))
	require.NoError(h.t, err)
	return rec
}

func (h *host) refused(signature string) {
	h.t.Helper()
	_, err := h.Create(h.t.Context(), "safe", signed(signature))
	require.ErrorIs(h.t, err, kv.ErrHeld)
}

func (h *host) refresh(rec kv.Record) kv.Record {
	h.t.Helper()
	got, err := h.Refresh(h.t.Context(), "safe", rec)
	require.NoError(h.t, err)
	return got
}

func (h *host) sees(rec kv.Record) {
	h.t.Helper()
	got, err := h.Get(h.t.Context(), "safe")
	require.NoError(h.t, err)
	require.Equal(h.t, rec, got)
}

func (h *host) seesVacancy() {
	h.t.Helper()
	_, err := h.Get(h.t.Context(), "safe")
	require.ErrorIs(h.t, err, kv.ErrVacant)
}

// bubble runs a test with two hosts in fake time.
func bubble(t *testing.T, test func(t *testing.T, reg *memregister.Register, a, b *host)) {
	synctest.Test(t, func(t *testing.T) {
		reg := memregister.New()
		test(t, reg, newHost(t, reg), newHost(t, reg))
	})
}

func TestARecordIsJudgedWhenItWasSeenForItsTTL(t *testing.T) {
	bubble(t, func(_ *testing.T, _ *memregister.Register, a, b *host) {
		rec := a.create("a")
		time.Sleep(4 * time.Second)
		b.sees(rec)
		time.Sleep(ttl - 1)
		b.sees(rec)
		b.refused("b")
		time.Sleep(1)
		b.seesVacancy()
		b.create("b")
	})
}

func TestARefreshIsASightingOfAnotherRevision(t *testing.T) {
	bubble(t, func(_ *testing.T, _ *memregister.Register, a, b *host) {
		rec := a.create("a")
		b.sees(rec)
		for range 5 {
			time.Sleep(ttl - 2)
			require.Equal(t, rec, a.refresh(rec), "a refresh changes nothing that a reader sees")
			b.refused("b")
			time.Sleep(1)
			b.sees(rec)
		}
	})
}

func TestWhoOnlyKnocksGetsInToo(t *testing.T) {
	bubble(t, func(_ *testing.T, _ *memregister.Register, a, b *host) {
		a.create("a")
		b.refused("b")
		time.Sleep(ttl)
		b.create("b")
	})
}

// What a store knows is in its memory alone.
func TestWhoeverHasJustBegunWaitsForAWholeTTL(t *testing.T) {
	bubble(t, func(t *testing.T, reg *memregister.Register, a, b *host) {
		rec := a.create("a")
		b.sees(rec)
		time.Sleep(time.Hour)
		b.seesVacancy()
		c := newHost(t, reg)
		c.sees(rec)
		time.Sleep(ttl - 1)
		c.refused("c")
		time.Sleep(1)
		c.create("c")
	})
}

func TestATakeoverIsOfTheRevisionThatWasJudged(t *testing.T) {
	bubble(t, func(t *testing.T, _ *memregister.Register, a, b *host) {
		rec := a.create("a")
		b.sees(rec)
		time.Sleep(ttl)
		b.seesVacancy()
		require.NoError(t, delayed(a, rec))
		b.refused("b")
		b.sees(rec) // alive again
		time.Sleep(ttl)
		won := b.create("b")
		require.Greater(t, won.Token, rec.Token)
		_, err := a.Refresh(t.Context(), "safe", rec)
		require.ErrorIs(t, err, kv.ErrStale)
		b.sees(won)
	})
}

// delayed is a refresh that its owner sent when it had not yet judged its own record.
func delayed(h *host, rec kv.Record) error {
	h.slept.Add(int64(ttl / 2))
	_, err := h.Refresh(h.t.Context(), "safe", rec)
	return err
}

func TestAnOwnerThatHasJudgedItsRecordDoesNotBringItBack(t *testing.T) {
	bubble(t, func(t *testing.T, reg *memregister.Register, a, b *host) {
		rec := a.create("a")
		time.Sleep(ttl)
		_, err := a.Refresh(t.Context(), "safe", rec)
		require.ErrorIs(t, err, kv.ErrStale)
		_, err = a.Swap(t.Context(), "safe", rec, signed("next"))
		require.ErrorIs(t, err, kv.ErrStale)
		require.ErrorIs(t, a.Delete(t.Context(), "safe", rec), kv.ErrStale)
		_, err = reg.Get(t.Context(), "safe")
		require.ErrorIs(t, err, kv.ErrVacant, "what is dead is removed, though it was not in the safe")
		b.create("b") // at once
	})
}

func TestADeadSignatureComesBackUnderAnotherToken(t *testing.T) {
	bubble(t, func(t *testing.T, _ *memregister.Register, a, b *host) {
		old := a.create("a")
		b.sees(old)
		time.Sleep(ttl)
		again := b.create("a")
		require.Greater(t, again.Token, old.Token)
		_, err := a.Refresh(t.Context(), "safe", old)
		require.ErrorIs(t, err, kv.ErrStale)
	})
}

// The answer to a publication is lost; the next refresh finds what it did.
func TestARefreshKeepsWhatWasPublished(t *testing.T) {
	bubble(t, func(t *testing.T, reg *memregister.Register, a, b *host) {
		rec := a.create("a")
		next := rec
		next.Value, next.Note = "published", "too"
		elsewhere := newHost(t, reg)
		_, err := elsewhere.Swap(t.Context(), "safe", rec, next)
		require.NoError(t, err)
		for range 3 {
			got := a.refresh(rec)
			require.Equal(t, "published", got.Value)
			require.Equal(t, "too", got.Note)
			require.NotEqual(t, rec.Revision, got.Revision)
			b.sees(got)
		}
		altered := rec
		altered.Value, altered.Note, altered.TTL = "never published", "", time.Hour
		got := a.refresh(altered)
		require.Equal(t, "published", got.Value)
		require.Equal(t, ttl, got.TTL)
	})
}

func TestASwapDoesNotMindTheOwnersRefreshes(t *testing.T) {
	bubble(t, func(t *testing.T, _ *memregister.Register, a, b *host) {
		rec := a.create("a")
		b.sees(rec)
		a.refresh(rec)
		a.refresh(rec)
		next := rec
		next.Value = "published"
		got, err := b.Swap(t.Context(), "safe", rec, next)
		require.NoError(t, err)
		_, err = a.Swap(t.Context(), "safe", rec, next)
		require.ErrorIs(t, err, kv.ErrStale, "it is no more what was published")
		a.refresh(rec)
		_, err = a.Swap(t.Context(), "safe", got, signed("heir"))
		require.NoError(t, err)
	})
}

func TestWhatOperationsCost(t *testing.T) {
	bubble(t, func(t *testing.T, reg *memregister.Register, a, b *host) {
		cost := func(requests int, do func()) {
			t.Helper()
			before := reg.Requests()
			do()
			require.Equal(t, requests, reg.Requests()-before)
		}
		var rec kv.Record
		cost(1, func() { rec = a.create("a") })
		cost(1, func() { rec = a.refresh(rec) })
		cost(1, func() {
			next := rec
			next.Value = "published"
			var err error
			rec, err = a.Swap(t.Context(), "safe", rec, next)
			require.NoError(t, err)
		})
		cost(2, func() { b.refused("b") })
		cost(1, func() { b.sees(rec) })
		time.Sleep(ttl)
		cost(1, func() { rec = b.create("b") })
		cost(1, func() { require.NoError(t, b.Delete(t.Context(), "safe", rec)) })
	})
}

func TestEachRefreshIsAWrite(t *testing.T) {
	bubble(t, func(t *testing.T, reg *memregister.Register, a, _ *host) {
		rec := a.create("a")
		seen := map[uint64]bool{}
		for range 5 {
			cell, err := reg.Get(t.Context(), "safe")
			require.NoError(t, err)
			require.False(t, seen[cell.Revision])
			seen[cell.Revision] = true
			a.refresh(rec)
		}
	})
}

func TestAForeignRecordIsNeverJudged(t *testing.T) {
	bubble(t, func(t *testing.T, reg *memregister.Register, a, b *host) {
		for _, value := range []string{"host-7", "", kv.Encode(signed("judged by the store"))} {
			reg.Overwrite("safe", value)
			for range 5 {
				a.refused("a")
				rec, err := b.Get(t.Context(), "safe")
				require.NoError(t, err)
				require.True(t, rec.Foreign)
				require.Equal(t, value, rec.Value)
				time.Sleep(ttl)
			}
			reg.Empty("safe")
			a.seesVacancy()
		}
		a.create("a")
	})
}

// expiring says of each record that it has an expiry of its own, or none, as a store
// may that has keys of other programs too.
type expiring struct {
	observer.Register
	ttl       time.Duration
	permanent bool
}

func (e expiring) say(rec kv.Record, err error) (kv.Record, error) {
	if err == nil && rec.Foreign {
		rec.TTL = e.ttl
	}
	if err == nil {
		rec.Permanent, rec.Lease = e.permanent, "lease"
	}
	return rec, err
}

func (e expiring) Get(ctx context.Context, name string) (kv.Record, error) {
	return e.say(e.Register.Get(ctx, name))
}

func (e expiring) Put(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
	return e.say(e.Register.Put(ctx, name, old, next))
}

func (e expiring) Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	return func(yield func(kv.Record, error) bool) {
		for rec, err := range e.Register.Watch(ctx, name) {
			if !yield(e.say(rec, err)) {
				return
			}
		}
	}
}

func TestAForeignRecordIsNotJudgedWhateverTTLItHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := memregister.New()
		h := newHost(t, expiring{reg, ttl, false})
		reg.Overwrite("safe", "host-7")
		all := watch(t, h)
		for range 5 {
			h.refused("a")
			rec, err := h.Get(t.Context(), "safe")
			require.NoError(t, err)
			require.True(t, rec.Foreign)
			time.Sleep(ttl)
		}
		require.Len(t, all(), 1)
	})
}

// A key without an expiry is what it has to be here.
func TestAnOwnRecordIsNeitherPermanentNorOfALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := memregister.New()
		h := newHost(t, expiring{reg, ttl, true})
		rec := h.create("a")
		require.False(t, rec.Permanent)
		require.Empty(t, rec.Lease)
		h.sees(rec)
		reg.Overwrite("safe", "host-7")
		rec, err := h.Get(t.Context(), "safe")
		require.NoError(t, err)
		require.True(t, rec.Permanent, "a foreign one is")
	})
}

// slow answers a get a while after it was carried out.
type slow struct {
	observer.Register
	by time.Duration
}

func (s slow) Get(ctx context.Context, name string) (kv.Record, error) {
	rec, err := s.Register.Get(ctx, name)
	time.Sleep(s.by)
	return rec, err
}

func (s slow) Put(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
	rec, err := s.Register.Put(ctx, name, old, next)
	time.Sleep(s.by)
	return rec, err
}

func TestTimeIsCountedFromTheAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := memregister.New()
		a, b := newHost(t, reg), newHost(t, slow{reg, 3 * time.Second})
		a.create("a")
		_, err := b.Get(t.Context(), "safe")
		require.NoError(t, err)
		time.Sleep(ttl - 3*time.Second - 1)
		_, err = b.Get(t.Context(), "safe") // is answered a nanosecond before the time
		require.NoError(t, err)
		_, err = b.Get(t.Context(), "safe")
		require.ErrorIs(t, err, kv.ErrVacant)
		b.create("b")
	})
}

// stubborn refuses all writes.
type stubborn struct{ *memregister.Register }

func (stubborn) Put(context.Context, string, kv.Record, kv.Record) (kv.Record, error) {
	return kv.Record{}, kv.ErrStale
}

func (stubborn) Remove(context.Context, string, kv.Record) error { return kv.ErrStale }

func TestNothingSpinsOnARegisterThatRefusesAll(t *testing.T) {
	bubble(t, func(t *testing.T, reg *memregister.Register, a, _ *host) {
		c := newHost(t, stubborn{reg})
		_, err := c.Create(t.Context(), "safe", signed("c"))
		require.ErrorIs(t, err, kv.ErrHeld)
		rec := a.create("a")
		_, err = c.Refresh(t.Context(), "safe", rec)
		require.ErrorIs(t, err, kv.ErrStale)
		require.ErrorIs(t, c.Delete(t.Context(), "safe", rec), kv.ErrStale)
		require.Less(t, reg.Requests(), 20)
	})
}

func TestALifetimeCountsOnWhoHasNotWatched(t *testing.T) {
	bubble(t, func(t *testing.T, _ *memregister.Register, a, _ *host) {
		life, err := a.Lifetime(ttl)
		require.NoError(t, err)
		require.Equal(t, ttl, life.Min)
		require.GreaterOrEqual(t, life.Max, 2*ttl)
		_, err = a.Lifetime(memregister.Floor - 1)
		require.ErrorIs(t, err, kv.ErrInvalid)
		_, err = a.Create(t.Context(), "safe", kv.Record{Signature: "a", TTL: memregister.Floor - 1})
		require.ErrorIs(t, err, kv.ErrInvalid)
	})
}

// A note that this library did not compose is taken as it is.
func TestANoteComesBackAsItWas(t *testing.T) {
	bubble(t, func(t *testing.T, reg *memregister.Register, a, b *host) {
		for _, note := range []string{"", " ", "7", "7 up", "no number", "-1 x"} {
			rec := signed("a")
			rec.Note = note
			rec, err := a.Create(t.Context(), "safe", rec)
			require.NoError(t, err)
			require.Equal(t, note, rec.Note)
			b.sees(rec)
			b.sees(a.refresh(rec))
			require.NoError(t, a.Delete(t.Context(), "safe", rec))
		}
		reg.Overwrite("safe", kv.EncodeObserved(kv.Record{Signature: "x", Note: "by hand", TTL: ttl, Token: 9}))
		rec, err := b.Get(t.Context(), "safe")
		require.NoError(t, err)
		require.Equal(t, "by hand", rec.Note)
		require.Equal(t, "by hand", b.refresh(rec).Note)
	})
}
