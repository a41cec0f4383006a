package rediskv_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// counter returns the counter's key for a name without braces.
func counter(name string) string { return "{" + name + "}:election-fence" }

func TestTokensGrowThoughTheServerForgetsEverything(t *testing.T) {
	server := testenv.StartRedis(t)
	b := newBench(t, server.Addr())
	name := b.name()
	old := b.create(name, time.Minute)
	for range 3 {
		require.NoError(t, b.other.FlushAll(b.ctx).Err())
		_, err := b.store.Refresh(b.ctx, name, old)
		require.ErrorIs(t, err, kv.ErrStale)
		rec := b.create(name, time.Minute)
		require.Greater(t, rec.Token, old.Token)
		old = rec
	}
	server.Kill()
	server.Wipe()
	server.Restart()
	require.Greater(t, b.create(name, time.Minute).Token, old.Token)
}

func TestTokensGrowThoughTheCounterWasDeleted(t *testing.T) {
	b := newBench(t, testenv.Redis(t))
	name := b.name()
	old := b.create(name, time.Minute)
	require.Equal(t, int64(1), b.other.Del(b.ctx, counter(name)).Val(), "the counter is where the documentation says")
	next, err := b.store.Swap(b.ctx, name, old, b.signed(time.Minute))
	require.NoError(t, err)
	require.Greater(t, next.Token, old.Token)
}

func TestTokensDoNotFallBackBehindTheCounter(t *testing.T) {
	b := newBench(t, testenv.Redis(t))
	name := b.name()
	ahead := time.Now().Add(24 * time.Hour).UnixMicro() // as after a clock that went back
	require.NoError(t, b.other.Set(b.ctx, counter(name), ahead, 0).Err())
	rec := b.create(name, time.Minute)
	require.Equal(t, uint64(ahead)+1, rec.Token)
	next := rec
	next.Value = "changed"
	rec, err := b.store.Swap(b.ctx, name, rec, next)
	require.NoError(t, err)
	require.Equal(t, uint64(ahead)+1, rec.Token)
	require.Equal(t, uint64(ahead)+2, rec.Revision)
	require.NoError(t, b.store.Delete(b.ctx, name, rec))
	require.Equal(t, uint64(ahead)+3, b.create(name, time.Minute).Token)
}

func TestTheLargestTokenIsCountedExactly(t *testing.T) {
	b := newBench(t, testenv.Redis(t))
	name := b.name()
	const last = 1<<53 - 1
	require.NoError(t, b.other.Set(b.ctx, counter(name), last-1, 0).Err())
	rec := b.create(name, time.Minute)
	require.Equal(t, uint64(last), rec.Token)
	_, err := b.store.Refresh(b.ctx, name, rec)
	require.NoError(t, err)
	rec.Token-- // the numbers differ in their last bit
	_, err = b.store.Refresh(b.ctx, name, rec)
	require.ErrorIs(t, err, kv.ErrStale)
}

func TestADamagedCounterIsAnErrorAndLeftAlone(t *testing.T) {
	b := newBench(t, testenv.Redis(t))
	for _, damage := range []any{"", "garbage", "-1", "1e3", "0x10", " 7", "1.5", uint64(1<<53 - 1), uint64(math.MaxUint64)} {
		name := b.name()
		rec := b.create(name, time.Minute)
		require.NoError(t, b.other.Set(b.ctx, counter(name), damage, 0).Err())
		b.damaged(name, rec)
		require.Equal(t, fmt.Sprint(damage), b.other.Get(b.ctx, counter(name)).Val())
	}
	name := b.name()
	rec := b.create(name, time.Minute)
	require.NoError(t, b.other.Del(b.ctx, counter(name)).Err())
	require.NoError(t, b.other.HSet(b.ctx, counter(name), "a", "b").Err())
	b.damaged(name, rec)
	require.Equal(t, "b", b.other.HGet(b.ctx, counter(name), "a").Val())
}

// damaged requires that what needs a number fails, has no effect and claims no
// definite outcome, and that what needs none works.
func (b *bench) damaged(name string, rec kv.Record) {
	b.Helper()
	_, err := b.store.Swap(b.ctx, name, rec, b.signed(time.Minute))
	require.ErrorContains(b, err, counter(name))
	b.unknown(err)
	require.Equal(b, rec, b.get(name))
	_, err = b.store.Refresh(b.ctx, name, rec)
	require.NoError(b, err)
	require.NoError(b, b.store.Delete(b.ctx, name, rec))
	_, err = b.store.Create(b.ctx, name, b.signed(time.Minute))
	require.ErrorContains(b, err, counter(name))
	b.unknown(err)
	_, err = b.store.Get(b.ctx, name)
	require.ErrorIs(b, err, kv.ErrVacant)
}

// unknown requires an error that says nothing definite.
func (b *bench) unknown(err error) {
	b.Helper()
	require.Error(b, err)
	for _, definite := range []error{kv.ErrVacant, kv.ErrHeld, kv.ErrStale, kv.ErrInvalid} {
		require.NotErrorIs(b, err, definite)
	}
}
