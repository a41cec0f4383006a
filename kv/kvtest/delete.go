package kvtest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

const (
	deletes     = "Delete empties the safe if it holds rec's signature and token."
	deleteStale = "Delete returns ErrStale if the safe does not hold rec. ErrStale: had no effect."
)

var deleteCases = []Case{
	{Name: "a deleted record is gone", Clause: deletes, check: aDeletedRecordIsGone},
	{Name: "a deleted record makes room before its TTL has passed", Clause: deletes + " ErrHeld: the store keeps the safe closed for a while after its last owner.", check: aDeletedRecordMakesRoom},
	{Name: "a record is deleted once", Clause: deleteStale, check: aRecordIsDeletedOnce},
	{Name: "nobody deletes another's record", Clause: deleteStale, check: nobodyDeletesAnothersRecord},
	{Name: "the resignation of an old term leaves the new one alone", Clause: deleteStale, check: theResignationOfAnOldTermLeavesTheNewOneAlone},
}

func aDeletedRecordIsGone(t *trial) {
	name, rec := t.held()
	t.delete(t.s, name, rec)
	t.vacant(name)
	_, err := t.open().Get(t.ctx, name)
	require.ErrorIs(t, err, kv.ErrVacant)
}

func aDeletedRecordMakesRoom(t *trial) {
	name, start := t.name(), time.Now()
	for range 3 {
		t.delete(t.s, name, t.succeed(t.s, name, t.signed("v")))
	}
	require.Less(t, time.Since(start), ample)
}

func aRecordIsDeletedOnce(t *trial) {
	name, rec := t.held()
	t.delete(t.s, name, rec)
	require.ErrorIs(t, t.s.Delete(t.ctx, name, rec), kv.ErrStale)
	t.vacant(name)
}

func nobodyDeletesAnothersRecord(t *trial) {
	name, rec := t.held()
	token, signature := rec, rec
	token.Token++
	signature.Signature = t.signed("").Signature
	for _, other := range []kv.Record{token, signature} {
		require.ErrorIs(t, t.s.Delete(t.ctx, name, other), kv.ErrStale)
		t.holds(name, rec)
		t.refresh(t.s, name, rec)
	}
}

func theResignationOfAnOldTermLeavesTheNewOneAlone(t *trial) {
	name, old := t.held()
	t.delete(t.s, name, old)
	rec := t.succeed(t.open(), name, t.signed("the next"))
	for range 3 {
		t.disowned(t.s, name, old)
		t.holds(name, rec)
	}
	t.refresh(t.s, name, rec)
}
