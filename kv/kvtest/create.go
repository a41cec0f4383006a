package kvtest

import (
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

var createCases = []Case{
	{
		Name:   "a vacant safe takes a record",
		Clause: "Create puts a record into a vacant safe. It returns the record as it stands in the safe.",
		check:  aVacantSafeTakesARecord,
	},
	{
		Name:   "a held safe takes no other record",
		Clause: "Create returns ErrHeld if a live record is there. ErrHeld: a create was refused and had no effect.",
		check:  aHeldSafeTakesNoOtherRecord,
	},
	{
		Name:   "a held safe does not take its own record again",
		Clause: "Create returns ErrHeld if a live record is there (even the caller's own).",
		check:  aHeldSafeDoesNotTakeItsOwnRecordAgain,
	},
	{
		Name:   "create uses signature, value, note and TTL alone",
		Clause: "Of rec, Create uses the Signature, Value, Note, TTL, Lasting and Shared.",
		check:  createUsesSignatureValueNoteAndTTLAlone,
	},
	{
		Name:   "a record leaves other safes alone",
		Clause: "A Store holds safes, one per name. A name is kept apart from every other name.",
		check:  aRecordLeavesOtherSafesAlone,
	},
}

func aVacantSafeTakesARecord(t *trial) {
	name, rec := t.name(), t.signed("the first")
	t.vacant(name)
	got := t.create(t.s, name, rec)
	require.Equal(t, rec.Signature, got.Signature)
	require.Equal(t, rec.Value, got.Value)
	require.NotZero(t, got.Token)
	require.GreaterOrEqual(t, got.TTL, rec.TTL, "the TTL that was granted")
	require.False(t, got.Foreign)
	require.False(t, got.Permanent)
	t.holds(name, got)
}

func aHeldSafeTakesNoOtherRecord(t *trial) {
	name, rec := t.held()
	got, err := t.open().Create(t.ctx, name, t.signed("the second"))
	require.ErrorIs(t, err, kv.ErrHeld, "it returned %v", got)
	t.holds(name, rec)
	t.refresh(t.s, name, rec)
}

func aHeldSafeDoesNotTakeItsOwnRecordAgain(t *trial) {
	name, rec := t.held()
	for range 2 {
		got, err := t.s.Create(t.ctx, name, rec)
		require.ErrorIs(t, err, kv.ErrHeld, "it returned %v", got)
	}
	changed := rec
	changed.Value = "another value"
	got, err := t.s.Create(t.ctx, name, changed)
	require.ErrorIs(t, err, kv.ErrHeld, "it returned %v", got)
	t.holds(name, rec)
}

func createUsesSignatureValueNoteAndTTLAlone(t *trial) {
	name, rec := t.name(), t.signed("v")
	rec.Token, rec.Revision, rec.Permanent = 1<<62, 1<<61, true
	rec.Lease, rec.Shared = strings.Repeat("no such lease ", 3), true
	got := t.create(t.s, name, rec)
	require.NotEqual(t, rec.Token, got.Token)
	require.NotEqual(t, rec.Revision, got.Revision)
	require.NotEqual(t, rec.Lease, got.Lease)
	require.False(t, got.Permanent)
	require.False(t, got.Shared, "it is never set in a record that a store returns")
	t.holds(name, got)
	t.refresh(t.s, name, got)
}

func aRecordLeavesOtherSafesAlone(t *trial) {
	one, first := t.held()
	two, second := t.held()
	t.publish(t.s, one, first, "changed")
	t.holds(two, second)
	t.delete(t.s, one, first)
	t.holds(two, second)
	t.refresh(t.s, two, second)
	t.disowned(t.s, one, second)
	t.disowned(t.s, two, first)
	t.vacant(one)
	t.holds(two, second)
}
