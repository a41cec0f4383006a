package rediskv_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	rediskv "github.com/electkv/election/backends/redis"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// pair returns two safes, and what they hold.
func (b *bench) pair(lead, second string) (leader, heir kv.Record) {
	b.Helper()
	return b.create(lead, time.Hour), b.create(second, time.Hour)
}

func TestAHandOverInOneStepIsOneRequest(t *testing.T) {
	var sent requests
	addr := testenv.Redis(t)
	b := newBench(t, addr)
	b.store = rediskv.New(sent.count(dial(t, addr)), nil)
	name := b.name()
	leader, heir := b.pair(name, name+":heir")
	_, err := b.store.HandOver(b.ctx, name, leader, name+":heir", heir, "")
	require.NoError(t, err) // by whichever form: the server may not know the script
	leader, err = b.store.Swap(b.ctx, name, b.get(name), b.signed(time.Hour))
	require.NoError(t, err)
	before := sent.Load()
	_, err = b.store.HandOver(b.ctx, name, leader, name+":heir", heir, "")
	require.NoError(t, err)
	require.EqualValues(t, 1, sent.Load()-before)
}

func TestInAClusterSafesOfOneSlotAloneAreHandedOverInOneStep(t *testing.T) {
	t.Parallel() // it mostly waits
	b := newBench(t, testenv.StartRedisCluster(t, 3, 0).Addrs()...)
	for name, want := range map[string]error{
		"{" + b.name() + "}": nil, // as it is hashed by its tag
		b.name():             errors.ErrUnsupported,
	} {
		leader, heir := b.pair(name, name+":heir")
		_, err := b.store.HandOver(b.ctx, name, leader, name+":heir", heir, "")
		if want == nil {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, want)
		require.NotErrorIs(t, err, kv.ErrStale)
		require.Equal(t, leader, b.get(name))
		require.Equal(t, heir, b.get(name+":heir"))
		_, err = b.store.Swap(b.ctx, name, leader, heir)
		require.NoError(t, err, "it can be handed over in two steps")
	}
}
