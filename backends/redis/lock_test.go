package rediskv_test

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election/backends/redis"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// A bench is a store, and the same server in the hands of others.
type bench struct {
	*testing.T
	ctx   context.Context
	addr  string // the server's, or one of the cluster's
	store *rediskv.Store
	plain bool // how the store keeps values
	other redis.UniversalClient
}

func newBench(t *testing.T, addrs ...string) *bench {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return &bench{T: t, ctx: ctx, addr: addrs[0], store: rediskv.New(dial(t, addrs...), nil), other: dial(t, addrs...)}
}

// newPlainBench returns a bench whose store keeps values plain.
func newPlainBench(t *testing.T, addrs ...string) *bench {
	t.Helper()
	b := newBench(t, addrs...)
	b.store, b.plain = rediskv.New(dial(t, addrs...), &rediskv.Options{Plain: true}), true
	return b
}

// inBothForms runs a test with each of the two ways to keep a value.
func inBothForms(t *testing.T, test func(b *bench)) {
	t.Helper()
	t.Run("text", func(t *testing.T) { test(newBench(t, testenv.Redis(t))) })
	t.Run("plain", func(t *testing.T) { test(newPlainBench(t, testenv.Redis(t))) })
}

// name returns a name that nobody has used before.
func (b *bench) name() string { return "rediskv-" + rand.Text() }

// signed returns what a new campaign would write.
func (b *bench) signed(ttl time.Duration) kv.Record {
	return kv.Record{Signature: "sig-" + rand.Text(), Value: "v", TTL: ttl}
}

func (b *bench) create(name string, ttl time.Duration) kv.Record {
	b.Helper()
	rec, err := b.store.Create(b.ctx, name, b.signed(ttl))
	require.NoError(b, err)
	return rec
}

func (b *bench) get(name string) kv.Record {
	b.Helper()
	rec, err := b.store.Get(b.ctx, name)
	require.NoError(b, err)
	return rec
}

// left returns the time that the server gives the key.
func (b *bench) left(key string) time.Duration {
	b.Helper()
	left, err := b.other.PTTL(b.ctx, key).Result()
	require.NoError(b, err)
	return left
}

func TestALockOfAnotherProgramExcludesCandidatesAndIsNotHarmed(t *testing.T) {
	inBothForms(t, func(b *bench) {
		name := b.name()
		locked, err := b.other.SetNX(b.ctx, name, "host-7", time.Minute).Result()
		require.NoError(b, err)
		require.True(b, locked)

		_, err = b.store.Create(b.ctx, name, b.signed(time.Second))
		require.ErrorIs(b, err, kv.ErrHeld)
		rec := b.get(name)
		require.True(b, rec.Foreign)
		require.False(b, rec.Permanent)
		require.Equal(b, "host-7", rec.Value)
		// Whoever claims to own it, by whatever it says of itself.
		claim := b.signed(time.Second)
		claim.Token, claim.Revision = rec.Token, rec.Revision
		_, err = b.store.Refresh(b.ctx, name, claim)
		require.ErrorIs(b, err, kv.ErrStale)
		_, err = b.store.Swap(b.ctx, name, claim, b.signed(time.Second))
		require.ErrorIs(b, err, kv.ErrStale)
		require.ErrorIs(b, b.store.Delete(b.ctx, name, claim), kv.ErrStale)

		require.Equal(b, "host-7", b.other.Get(b.ctx, name).Val())
		require.Greater(b, b.left(name), 30*time.Second)

		require.NoError(b, b.other.Del(b.ctx, name).Err())
		b.create(name, time.Second)
	})
}

func TestARecordExcludesLocksOfOtherPrograms(t *testing.T) {
	inBothForms(t, func(b *bench) {
		name := b.name()
		rec := b.create(name, time.Minute)
		locked, err := b.other.SetNX(b.ctx, name, "host-7", time.Second).Result()
		require.NoError(b, err)
		require.False(b, locked)
		require.Equal(b, rec, b.get(name))
		if b.plain {
			require.Equal(b, rec.Value, b.other.Get(b.ctx, name).Val(), "what is at the key is the value")
			return
		}
		require.Equal(b, rec, kv.Decode(b.other.Get(b.ctx, name).Val()), "what is at the key is the text form")
	})
}

func TestAKeyWithoutAnExpiryIsPermanentAndNotStolen(t *testing.T) {
	inBothForms(t, func(b *bench) {
		name := b.name()
		require.NoError(b, b.other.SetNX(b.ctx, name, "crashed before EXPIRE", 0).Err())
		rec := b.get(name)
		require.True(b, rec.Foreign)
		require.True(b, rec.Permanent)
		_, err := b.store.Create(b.ctx, name, b.signed(time.Second))
		require.ErrorIs(b, err, kv.ErrHeld)
		require.Equal(b, -time.Nanosecond, b.left(name), "the key has no expiry, and got none")
	})
}

func TestAKeyOfAnotherTypeIsAForeignRecord(t *testing.T) {
	inBothForms(t, func(b *bench) {
		for kind, put := range map[string]func(name string) error{
			"hash": func(name string) error { return b.other.HSet(b.ctx, name, "owner", "host-7").Err() },
			"list": func(name string) error { return b.other.RPush(b.ctx, name, "host-7").Err() },
			"zset": func(name string) error { return b.other.ZAdd(b.ctx, name, redis.Z{Member: "host-7"}).Err() },
		} {
			name := b.name()
			require.NoError(b, put(name))
			rec := b.get(name)
			require.True(b, rec.Foreign, kind)
			require.True(b, rec.Permanent, kind)
			require.Contains(b, rec.Value, kind)
			for seen, err := range b.store.Watch(b.ctx, name) {
				require.NoError(b, err, kind)
				require.Equal(b, rec, seen, kind)
				break
			}

			_, err := b.store.Create(b.ctx, name, b.signed(time.Second))
			require.ErrorIs(b, err, kv.ErrHeld, kind)
			claim := b.signed(time.Second)
			claim.Token, claim.Revision = 1, rec.Revision
			_, err = b.store.Refresh(b.ctx, name, claim)
			require.ErrorIs(b, err, kv.ErrStale, kind)
			_, err = b.store.Swap(b.ctx, name, claim, b.signed(time.Second))
			require.ErrorIs(b, err, kv.ErrStale, kind)
			require.ErrorIs(b, b.store.Delete(b.ctx, name, claim), kv.ErrStale, kind)
			require.Equal(b, kind, b.other.Type(b.ctx, name).Val())

			require.NoError(b, b.other.PExpire(b.ctx, name, time.Minute).Err())
			require.False(b, b.get(name).Permanent, kind)
		}
	})
}

func TestARecordThatLooksLikeOursButHasNoNumbersIsForeign(t *testing.T) {
	inBothForms(t, func(b *bench) {
		name := b.name()
		text := kv.Encode(b.signed(time.Minute))
		require.NoError(b, b.other.Set(b.ctx, name, text, 0).Err())
		rec := b.get(name)
		require.True(b, rec.Foreign)
		require.Equal(b, text, rec.Value)
	})
}

func TestARefreshRestoresAnExpiryThatSomebodyStripped(t *testing.T) {
	b := newBench(t, testenv.Redis(t))
	name := b.name()
	rec := b.create(name, time.Minute)
	require.NoError(t, b.other.Persist(b.ctx, name).Err())
	seen := b.get(name)
	require.True(t, seen.Owns(rec))
	require.True(t, seen.Permanent)

	fresh, err := b.store.Refresh(b.ctx, name, rec)
	require.NoError(t, err)
	require.Equal(t, rec, fresh)
	require.Greater(t, b.left(name), 30*time.Second)
	require.Equal(t, rec, b.get(name))
}

func TestAPublicationRestoresAnExpiryThatSomebodyStripped(t *testing.T) {
	b := newBench(t, testenv.Redis(t))
	name := b.name()
	rec := b.create(name, time.Minute)
	require.NoError(t, b.other.Persist(b.ctx, name).Err())
	next := rec
	next.Value = "changed"
	_, err := b.store.Swap(b.ctx, name, rec, next)
	require.NoError(t, err)
	require.Greater(t, b.left(name), 30*time.Second)
}

func TestARefreshRestoresAnExpiryThatSomebodyChanged(t *testing.T) {
	b := newBench(t, testenv.Redis(t))
	name := b.name()
	rec := b.create(name, time.Minute)
	for _, ttl := range []time.Duration{10 * time.Second, time.Hour} {
		require.NoError(t, b.other.PExpire(b.ctx, name, ttl).Err())
		_, err := b.store.Refresh(b.ctx, name, rec)
		require.NoError(t, err)
		require.InDelta(t, time.Minute, b.left(name), float64(20*time.Second))
	}
}
