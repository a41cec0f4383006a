package kvtest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

const handsOver = "With another signature in next, Swap hands the safe over: the record gets a new, larger token and its full TTL from the start of the call."

var takeoverCases = []Case{
	{Name: "a takeover replaces the record", Clause: handsOver, check: aTakeoverReplacesTheRecord},
	{Name: "a takeover works from any client that read the record", Clause: handsOver, check: aTakeoverWorksFromAnyClient},
	{Name: "a takeover grants a full life", Clause: handsOver, check: aTakeoverGrantsAFullLife},
	{
		Name:   "a former owner's refreshes do not keep its successor alive",
		Clause: "Refresh restarts the TTL of the caller's record. It returns ErrStale if the safe does not hold rec. ErrStale: had no effect.",
		check:  aFormerOwnersRefreshesDoNotKeepItsSuccessorAlive,
	},
}

func aTakeoverReplacesTheRecord(t *trial) {
	name, old := t.held()
	next := t.signed("the next")
	rec := t.swap(t.s, name, old, next)
	require.Equal(t, next.Signature, rec.Signature)
	require.Equal(t, next.Value, rec.Value)
	require.Greater(t, rec.Token, old.Token)
	require.NotEqual(t, old.Revision, rec.Revision)
	require.GreaterOrEqual(t, rec.TTL, next.TTL)
	t.holds(name, rec)
	t.disowned(t.s, name, old)
	t.holds(name, rec)
	t.refresh(t.s, name, rec)
	rec = t.publish(t.s, name, rec, "published")
	t.delete(t.s, name, rec)
	t.vacant(name)
}

func aTakeoverWorksFromAnyClient(t *trial) {
	name, old := t.held()
	other := t.open()
	rec := t.swap(other, name, t.get(other, name), t.signed("the next"))
	t.disowned(t.s, name, old)
	t.disowned(other, name, old)
	t.holds(name, rec)
	t.refresh(t.s, name, rec)
}

// The old record's own end, half a life after the takeover, must not take the
// new one along.
func aTakeoverGrantsAFullLife(t *trial) {
	var old kv.Record
	name, rec, _, start := t.inTime(t.ttl/2, func(name string, rec kv.Record) (_ kv.Record, err error) {
		if old, err = t.s.Get(t.ctx, name); err != nil {
			return old, err
		}
		return t.s.Swap(t.ctx, name, old, t.mortal("the next"))
	})
	require.Greater(t, rec.Token, old.Token)
	t.fades(name, rec, start, nil)
}

func aFormerOwnersRefreshesDoNotKeepItsSuccessorAlive(t *trial) {
	name, old := t.held()
	start := time.Now()
	rec := t.swap(t.s, name, old, t.mortal("the next"))
	t.fades(name, rec, start, func() { t.disowned(t.s, name, old) })
	t.disowned(t.s, name, old)
	t.vacant(name)
}
