package kvtest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

const tokensGrow = "Token: each new signature gets a larger token than every earlier one, across deletes, expiries and restarts. It stays the same as long as the signature does."

var tokenCases = []Case{
	{Name: "tokens grow across deletes", Clause: tokensGrow, check: tokensGrowAcrossDeletes},
	{Name: "tokens grow across expiries", Clause: tokensGrow, check: tokensGrowAcrossExpiries},
	{Name: "tokens grow across hand-overs", Clause: tokensGrow, check: tokensGrowAcrossHandOvers},
	{Name: "tokens grow across restarts of the client", Clause: tokensGrow, check: tokensGrowAcrossRestarts},
	{Name: "tokens grow across removals by an operator", Clause: tokensGrow, check: tokensGrowAcrossRemovals, needs: remove},
	{Name: "tokens grow across foreign records", Clause: tokensGrow, check: tokensGrowAcrossForeignRecords, needs: putAndRemove},
	{
		Name:   "the same signature comes back under a larger token",
		Clause: "A record is identified by its Signature and Token together: a create that was delayed in the network may bring an old signature in again, but never under the same token.",
		check:  theSameSignatureComesBackUnderALargerToken,
	},
}

// ascending requires that each token is larger than all before it.
type ascending struct {
	t    *trial
	last uint64
}

func (a *ascending) add(rec kv.Record) {
	a.t.Helper()
	require.Greater(a.t, rec.Token, a.last, "the token of %+v", rec)
	a.last = rec.Token
}

func tokensGrowAcrossDeletes(t *trial) {
	name, tokens := t.name(), ascending{t: t}
	for range 5 {
		rec := t.succeed(t.s, name, t.signed("v"))
		tokens.add(rec)
		rec = t.publish(t.s, name, rec, "w") // may draw from the same counter
		t.delete(t.s, name, rec)
	}
}

func tokensGrowAcrossExpiries(t *trial) {
	name, tokens := t.name(), ascending{t: t}
	for range 2 {
		start := time.Now()
		rec := t.succeed(t.s, name, t.mortal("v"))
		tokens.add(rec)
		t.fades(name, rec, start, nil)
	}
	tokens.add(t.succeed(t.s, name, t.signed("v")))
}

func tokensGrowAcrossHandOvers(t *trial) {
	name, rec := t.held()
	tokens := ascending{t: t}
	tokens.add(rec)
	for range 5 {
		rec = t.publish(t.s, name, rec, "changed")
		rec = t.swap(t.s, name, rec, t.signed("next"))
		tokens.add(rec)
	}
	t.delete(t.s, name, rec)
	tokens.add(t.succeed(t.s, name, t.signed("after")))
}

func tokensGrowAcrossRestarts(t *trial) {
	name, tokens := t.name(), ascending{t: t}
	for range 3 {
		s := t.open()
		rec := t.succeed(s, name, t.signed("v"))
		tokens.add(rec)
		t.delete(s, name, rec)
	}
}

func tokensGrowAcrossRemovals(t *trial) {
	name, tokens := t.name(), ascending{t: t}
	for range 3 {
		rec := t.succeed(t.s, name, t.signed("v"))
		tokens.add(rec)
		rec = t.publish(t.s, name, rec, "w")
		t.b.Remove(t, name)
		t.vacant(name)
		t.disowned(t.s, name, rec)
	}
}

func tokensGrowAcrossForeignRecords(t *trial) {
	name, rec := t.held()
	tokens := ascending{t: t}
	tokens.add(rec)
	t.b.Put(t, name, "somebody else")
	t.b.Remove(t, name)
	tokens.add(t.succeed(t.s, name, t.signed("v")))
}

func theSameSignatureComesBackUnderALargerToken(t *trial) {
	name, old := t.held()
	t.delete(t.s, name, old)
	rec := t.succeed(t.s, name, old)
	require.Equal(t, old.Signature, rec.Signature)
	require.Greater(t, rec.Token, old.Token)
	t.disowned(t.s, name, old)
	t.holds(name, rec)
	t.refresh(t.s, name, rec)
}
