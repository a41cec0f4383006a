package kvtest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

const (
	foreignKept     = "A foreign record is reported, and is never changed, refreshed or deleted."
	foreignReported = "Foreign is set if this library did not write the record, or wrote it in a later version. It is another program's lock."
	foreignHeld     = "ErrHeld: the safe holds a live record, perhaps a foreign one."
	foreignGiven    = "ErrInvalid: the record is foreign where the caller's own is needed. Nothing happened."
)

var foreignCases = []Case{
	{Name: "a foreign record is reported as one", Clause: foreignReported, check: aForeignRecordIsReportedAsOne, needs: putAndRemove},
	{Name: "a record from the future is foreign", Clause: foreignReported, check: aRecordFromTheFutureIsForeign, needs: putAndRemove},
	{Name: "a foreign record holds the safe", Clause: foreignHeld + " " + foreignKept, check: aForeignRecordHoldsTheSafe, needs: putAndRemove},
	{Name: "a foreign record cannot be swapped, refreshed or deleted", Clause: foreignGiven + " " + foreignKept, check: aForeignRecordCannotBeChanged, needs: putAndRemove},
	{Name: "nothing is handed over to a foreign record", Clause: foreignGiven, check: nothingIsHandedOverToAForeignRecord, needs: putAndRemove},
	{Name: "an owner whose record was overwritten has lost it", Clause: refreshProves + " " + foreignKept, check: anOwnerWhoseRecordWasOverwrittenHasLostIt, needs: putAndRemove},
	{Name: "a foreign record outlives the record that it overwrote", Clause: foreignKept + " Permanent: unless somebody removes it, it stays for ever.", check: aForeignRecordOutlivesTheOneItOverwrote, needs: putAndRemove, long: true},
	{Name: "a watch reports a foreign record and its removal", Clause: "Watch yields the state after each change, whatever is in the safe.", check: aWatchReportsAForeignRecordAndItsRemoval, needs: putAndRemove},
}

// strangers are what other programs leave at a key.
var strangers = []string{
	"host-7", "", " ", "\x00\xff", "{", "{}", "[]", "null", "42", `"text"`,
	`{"election":"1"}`, `{"election":1}`, `{"election":1,"signature":"s"}`, `{"election":1,"ttl_ms":1000}`,
	`{"election":1,"signature":"s","ttl_ms":-1}`,
}

const fromTheFuture = `{"election":2,"signature":"s","note":"n","ttl_ms":1000,"token":7}`

// occupied returns a new safe with somebody else's value in it.
func (t *trial) occupied(value string) string {
	t.Helper()
	name := t.name()
	t.b.Put(t, name, value)
	return name
}

// unharmed requires that the safe still holds the other program's value.
func (t *trial) unharmed(name, value string) kv.Record {
	t.Helper()
	rec := t.get(t.s, name)
	require.True(t, rec.Foreign, "a foreign record was replaced: %+v", rec)
	require.Equal(t, value, rec.Value, "a foreign record was changed")
	require.Empty(t, rec.Signature, "a foreign record has no signature")
	require.Empty(t, rec.Note, "a foreign record has no note")
	return rec
}

func aForeignRecordIsReportedAsOne(t *trial) {
	for _, value := range strangers {
		name := t.occupied(value)
		rec := t.unharmed(name, value)
		require.True(t, rec.Permanent, "a record without an expiry: %+v", rec)
		w := t.watch(t.s, name)
		require.Equal(t, sighting{rec: rec}, w.next(), "what a watch yields first")
		w.end()
	}
}

func aRecordFromTheFutureIsForeign(t *trial) {
	name := t.occupied(fromTheFuture)
	t.unharmed(name, fromTheFuture)
	_, err := t.s.Create(t.ctx, name, t.signed("v"))
	require.ErrorIs(t, err, kv.ErrHeld)
	t.unharmed(name, fromTheFuture)
}

func aForeignRecordHoldsTheSafe(t *trial) {
	for _, value := range strangers {
		name := t.occupied(value)
		got, err := t.s.Create(t.ctx, name, t.signed("v"))
		require.ErrorIs(t, err, kv.ErrHeld, "create over %q returned %+v", value, got)
		t.unharmed(name, value)
	}
	name := t.occupied("somebody")
	t.b.Remove(t, name)
	t.vacant(name)
	t.holds(name, t.succeed(t.s, name, t.signed("v")))
}

func aForeignRecordCannotBeChanged(t *trial) {
	for _, value := range strangers {
		name := t.occupied(value)
		rec := t.unharmed(name, value)
		got, err := t.s.Refresh(t.ctx, name, rec)
		require.ErrorIs(t, err, kv.ErrInvalid, "refresh of %q returned %+v", value, got)
		got, err = t.s.Swap(t.ctx, name, rec, t.signed("taken over"))
		require.ErrorIs(t, err, kv.ErrInvalid, "swap of %q returned %+v", value, got)
		require.ErrorIs(t, t.s.Delete(t.ctx, name, rec), kv.ErrInvalid, "delete of %q", value)
		require.Equal(t, rec, t.unharmed(name, value))
	}
}

func nothingIsHandedOverToAForeignRecord(t *trial) {
	name, rec := t.held()
	next := t.unharmed(t.occupied("somebody"), "somebody")
	got, err := t.s.Swap(t.ctx, name, rec, next)
	require.ErrorIs(t, err, kv.ErrInvalid, "it returned %+v", got)
	t.holds(name, rec)
	t.refresh(t.s, name, rec)
}

func anOwnerWhoseRecordWasOverwrittenHasLostIt(t *trial) {
	for _, value := range []string{"somebody", "", fromTheFuture} {
		name, rec := t.held()
		t.b.Put(t, name, value)
		for range 3 {
			t.disowned(t.s, name, rec)
			t.unharmed(name, value)
		}
	}
}

// What kept the old record alive (a lease, a session, an expiry) ends, and does
// not take the other program's record along.
func aForeignRecordOutlivesTheOneItOverwrote(t *trial) {
	name := t.name()
	rec := t.create(t.s, name, t.mortal("mine"))
	t.b.Put(t, name, "somebody")
	end := time.Now().Add(t.lifetime(rec.TTL).Max + t.ttl)
	for time.Now().Before(end) {
		t.unharmed(name, "somebody")
		time.Sleep(t.ttl / 10)
	}
	t.disowned(t.s, name, rec)
	t.unharmed(name, "somebody")
	_, err := t.s.Create(t.ctx, name, t.signed("v"))
	require.ErrorIs(t, err, kv.ErrHeld)
	t.unharmed(name, "somebody")
}

func aWatchReportsAForeignRecordAndItsRemoval(t *trial) {
	name, rec := t.held()
	w := t.watch(t.open(), name)
	w.sees(rec)
	for _, value := range []string{"host-7", "", "{}", fromTheFuture} {
		t.b.Put(t, name, value)
		w.seesForeign(value)
	}
	t.b.Remove(t, name)
	w.seesVacancy()
	w.sees(t.succeed(t.s, name, t.signed("v")))
	t.b.Remove(t, name)
	w.seesVacancy()
}
