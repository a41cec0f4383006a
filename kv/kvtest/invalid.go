package kvtest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

const invalid = "ErrInvalid means that the store can never do what was asked. Nothing happened."

var invalidCases = []Case{
	{Name: "no operation takes an empty name", Clause: "Names are any non-empty strings. " + invalid, check: noOperationTakesAnEmptyName},
	{Name: "no record goes without a signature", Clause: "Signature: empty in a foreign record. " + invalid, check: noRecordGoesWithoutASignature},
	{Name: "a TTL is positive", Clause: "Create returns ErrInvalid if this store does not take the TTL. Lifetime returns ErrInvalid if the store cannot honour ttl.", check: aTTLIsPositive},
}

func noOperationTakesAnEmptyName(t *trial) {
	_, rec := t.held()
	t.refuses("", rec)
}

// refuses requires that every operation on name returns ErrInvalid.
func (t *trial) refuses(name string, rec kv.Record) {
	t.Helper()
	_, err := t.s.Create(t.ctx, name, t.signed("v"))
	require.ErrorIs(t, err, kv.ErrInvalid, "create %.80q", name)
	_, err = t.s.Get(t.ctx, name)
	require.ErrorIs(t, err, kv.ErrInvalid, "get %.80q", name)
	_, err = t.s.Refresh(t.ctx, name, rec)
	require.ErrorIs(t, err, kv.ErrInvalid, "refresh %.80q", name)
	_, err = t.s.Swap(t.ctx, name, rec, t.signed("v"))
	require.ErrorIs(t, err, kv.ErrInvalid, "swap %.80q", name)
	require.ErrorIs(t, t.s.Delete(t.ctx, name, rec), kv.ErrInvalid, "delete %.80q", name)
	yields := 0
	for _, err := range t.s.Watch(t.ctx, name) {
		yields++
		require.Equal(t, 1, yields, "ErrInvalid is the last thing that the watch of %.80q yields", name)
		require.ErrorIs(t, err, kv.ErrInvalid, "watch %.80q", name)
	}
	require.Equal(t, 1, yields, "a watch of %.80q says why it ends", name)
}

func noRecordGoesWithoutASignature(t *trial) {
	name, unsigned := t.name(), t.signed("v")
	unsigned.Signature = ""
	_, err := t.s.Create(t.ctx, name, unsigned)
	require.ErrorIs(t, err, kv.ErrInvalid, "create")
	t.vacant(name)
	rec := t.create(t.s, name, t.signed("v"))
	_, err = t.s.Swap(t.ctx, name, rec, unsigned)
	require.ErrorIs(t, err, kv.ErrInvalid, "swap")
	t.holds(name, rec)
	t.refresh(t.s, name, rec)
}

func aTTLIsPositive(t *trial) {
	held, rec := t.held()
	for _, ttl := range []time.Duration{0, -1, -time.Second, -1 << 63} {
		_, err := t.s.Lifetime(ttl)
		require.ErrorIs(t, err, kv.ErrInvalid, "lifetime of %v", ttl)
		name, bad := t.name(), t.signed("v")
		bad.TTL = ttl
		_, err = t.s.Create(t.ctx, name, bad)
		require.ErrorIs(t, err, kv.ErrInvalid, "create with TTL %v", ttl)
		t.vacant(name)
		_, err = t.s.Swap(t.ctx, held, rec, bad)
		require.ErrorIs(t, err, kv.ErrInvalid, "hand over with TTL %v", ttl)
		t.holds(held, rec)
	}
}
