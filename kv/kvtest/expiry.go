package kvtest

import (
	"errors"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

const (
	neverEarly = "A record is never treated as expired before less than the TTL has passed since the start of the call that last wrote or refreshed it; it may live longer, up to Lifetime.Max."
	noHelp     = "After an expiry Watch always yields the vacancy sooner or later, without any other client's help."
)

var expiryCases = []Case{
	{Name: "a record fades, and not before its TTL has passed", Clause: neverEarly, check: aRecordFadesAndNotBeforeItsTTLHasPassed},
	{Name: "an odd TTL is rounded up, if at all", Clause: neverEarly + " TTL: as granted by the store.", check: anOddTTLIsRoundedUp},
	{Name: "nobody takes a safe over before its record has faded", Clause: neverEarly, check: nobodyTakesASafeOverBeforeItsRecordHasFaded},
	{Name: "a watch alone sees a record fade, in time and not early", Clause: noHelp + " " + neverEarly, check: watched(aWatchAloneSeesARecordFade)},
	{Name: "an expired record is in nobody's way", Clause: "Create puts a record into a vacant safe: a safe is vacant or holds one live record.", check: anExpiredRecordIsInNobodysWay},
}

func aRecordFadesAndNotBeforeItsTTLHasPassed(t *trial) {
	name, start := t.name(), time.Now()
	rec := t.create(t.s, name, t.mortal("v"))
	t.fades(name, rec, start, nil)
}

func anOddTTLIsRoundedUp(t *trial) {
	name, rec := t.name(), t.mortal("v")
	rec.TTL += t.ttl/3 + 1001*time.Microsecond
	asked := rec.TTL
	start := time.Now()
	rec = t.create(t.s, name, rec)
	require.GreaterOrEqual(t, rec.TTL, asked)
	t.fades(name, rec, start, nil)
}

// Candidates that knock all the time neither get in early nor keep the record
// alive.
func nobodyTakesASafeOverBeforeItsRecordHasFaded(t *trial) {
	name, other := t.name(), t.open()
	start := time.Now()
	old := t.create(t.s, name, t.mortal("the old"))
	deadline := start.Add(t.lifetime(t.ttl).Max + patience)
	for {
		rec, err := other.Create(t.ctx, name, t.signed("the next"))
		now := time.Now()
		if errors.Is(err, kv.ErrHeld) {
			require.True(t, now.Before(deadline), "the safe is still held after %v", now.Sub(start))
			time.Sleep(t.ttl / 50)
			continue
		}
		require.NoError(t, err)
		require.False(t, now.Before(earliest(start, old.TTL)), "taken over after %v; the TTL was %v", now.Sub(start), old.TTL)
		t.disowned(t.s, name, old)
		t.holds(name, rec)
		return
	}
}

func aWatchAloneSeesARecordFade(t *trial, watch view) {
	name, start := t.name(), time.Now()
	rec := t.create(t.s, name, t.mortal("v"))
	w := watch(t, t.open(), name)
	first := w.next()
	if time.Since(start) < rec.TTL { // else it may have faded before the watch began
		require.Equal(t, sighting{rec: rec}, first)
	}
	if !first.vacant() {
		w.seesVacancy()
	}
	now := time.Now()
	require.False(t, now.Before(earliest(start, rec.TTL)), "the watch saw the record fade after %v; its TTL was %v", now.Sub(start), rec.TTL)
	t.vacant(name)
}

func anExpiredRecordIsInNobodysWay(t *trial) {
	name, start := t.name(), time.Now()
	old := t.create(t.s, name, t.mortal("the old"))
	t.fades(name, old, start, nil)
	rec := t.succeed(t.s, name, t.signed("the next"))
	require.Greater(t, rec.Token, old.Token)
	t.holds(name, rec)
	t.disowned(t.s, name, old)
	t.holds(name, rec)
}
