package kvtest

import (
	"math"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

var lifetimeCases = []Case{
	{
		Name:   "a lifetime is at least the TTL and its longest at least its shortest",
		Clause: "Lifetime says how long records with this ttl live. It sends no requests. Min: at least that TTL. Max is the longest time.",
		check:  aLifetimeIsConsistent,
	},
	{
		Name:   "lifetime and create agree on which TTLs are to be had",
		Clause: "Lifetime returns ErrInvalid if the store cannot honour ttl. Create returns ErrInvalid if this store does not take the TTL.",
		check:  lifetimeAndCreateAgree,
	},
}

func oddTTLs(ttl time.Duration) []time.Duration {
	return []time.Duration{
		1, time.Microsecond, time.Millisecond, ttl / 2, ttl, ttl + 1, ttl + time.Millisecond, 3 * ttl,
		ample, time.Hour, 24 * time.Hour, 1000 * 24 * time.Hour, math.MaxInt64/2 + 1, math.MaxInt64 - 1, math.MaxInt64,
	}
}

func aLifetimeIsConsistent(t *trial) {
	other := t.open()
	for _, ttl := range oddTTLs(t.ttl) {
		life, err := t.s.Lifetime(ttl)
		if err != nil {
			require.ErrorIs(t, err, kv.ErrInvalid, "lifetime of %v", ttl)
			continue
		}
		require.GreaterOrEqual(t, life.Min, ttl, "the shortest life")
		require.GreaterOrEqual(t, life.Max, life.Min, "the longest life for a TTL of %v", ttl)
		again, err := other.Lifetime(ttl)
		require.NoError(t, err)
		require.Equal(t, life, again, "another client's answer")
	}
	t.lifetime(t.ttl)
	t.lifetime(ample)
}

func lifetimeAndCreateAgree(t *trial) {
	for _, ttl := range oddTTLs(t.ttl) {
		name, rec := t.name(), t.signed("v")
		rec.TTL = ttl
		life, invalid := t.s.Lifetime(ttl)
		start := time.Now()
		got, err := t.s.Create(t.ctx, name, rec)
		if invalid != nil {
			require.ErrorIs(t, err, kv.ErrInvalid, "create with a TTL of %v", ttl)
			t.vacant(name)
			continue
		}
		require.NoError(t, err, "create with a TTL of %v", ttl)
		require.GreaterOrEqual(t, got.TTL, ttl, "the TTL that was granted")
		require.LessOrEqual(t, got.TTL, life.Max, "the TTL that was granted")
		seen, err := t.s.Get(t.ctx, name)
		if time.Since(start) < ttl {
			require.NoError(t, err, "get a record with a TTL of %v", ttl)
			require.Equal(t, got, seen)
		}
	}
}
