package rediskv_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election/backends/redis"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// What is read is the present state, though the client may read from replicas.
func TestReadsAreOfThePrimaryWhereverTheClientReads(t *testing.T) {
	t.Parallel() // it mostly waits
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cluster := testenv.StartRedisCluster(t, 1, 1)
	replica := redis.NewClient(&redis.Options{Addr: cluster.Nodes[1].Addr()})
	t.Cleanup(func() { require.NoError(t, replica.Close()) })
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs(), RouteRandomly: true})
	t.Cleanup(func() { require.NoError(t, client.Close()) })

	b := &bench{T: t, ctx: ctx, store: rediskv.New(client, nil), other: replica}
	name := b.name()
	client.ReloadState(ctx)
	for range 50 {
		rec := b.create(name, time.Minute)
		require.Equal(t, rec, b.get(name))
		require.NoError(t, b.store.Delete(ctx, name, rec))
	}
	require.Zero(t, b.calls(), "scripts that the replica was sent")
}

func TestARecordIsKeptWhileItsSlotMigrates(t *testing.T) {
	t.Parallel() // it mostly waits
	b := newBench(t, testenv.StartRedisCluster(t, 3, 0).Addrs()...)
	name := b.name()
	rec := b.create(name, time.Hour)
	m := b.migrate(name)
	kept := func(published bool) {
		t.Helper()
		require.Equal(t, rec, b.get(name))
		_, err := b.store.Refresh(b.ctx, name, rec)
		require.NoError(t, err)
		_, err = b.store.Create(b.ctx, name, b.signed(time.Hour))
		if !published {
			b.unknown(err)
			return
		}
		require.ErrorIs(t, err, kv.ErrHeld)
	}
	place := "{" + name + "}:heir"
	stays := func(want error) {
		t.Helper()
		stranger := rec
		stranger.Signature += "!"
		_, err := b.store.Vacate(b.ctx, name, stranger, place)
		require.ErrorIs(t, err, want)
	}
	kept(true)
	m.move(name)
	kept(false)
	stays(errors.ErrUnsupported)
	m.move(counter(name))
	kept(true)
	stays(errors.ErrUnsupported)
	m.end()
	kept(true)
	stays(kv.ErrStale)
	require.NoError(t, b.store.Delete(b.ctx, name, rec))
	require.Greater(t, b.create(name, time.Hour).Token, rec.Token)
}

// A migration moves a slot of a cluster key by key.
type migration struct {
	*bench
	slot         int64
	from, to     *redis.Client
	fromID, toID any
}

// migrate begins to move the slot of a key to another node.
func (b *bench) migrate(key string) *migration {
	b.Helper()
	cluster := b.other.(*redis.ClusterClient)
	addrs := cluster.Options().Addrs
	from, err := cluster.MasterForKey(b.ctx, key)
	require.NoError(b, err)
	elsewhere := slices.IndexFunc(addrs, func(addr string) bool { return addr != from.Options().Addr })
	to := b.client(&redis.Options{Addr: addrs[elsewhere]})
	m := &migration{bench: b, slot: cluster.ClusterKeySlot(b.ctx, key).Val(), from: from, to: to,
		fromID: from.Do(b.ctx, "cluster", "myid").Val(), toID: to.Do(b.ctx, "cluster", "myid").Val()}
	require.NoError(b, to.Do(b.ctx, "cluster", "setslot", m.slot, "importing", m.fromID).Err())
	require.NoError(b, from.Do(b.ctx, "cluster", "setslot", m.slot, "migrating", m.toID).Err())
	return m
}

func (m *migration) move(key string) {
	m.Helper()
	host, port, err := net.SplitHostPort(m.to.Options().Addr)
	require.NoError(m, err)
	require.NoError(m, m.from.Migrate(m.ctx, host, port, key, 0, time.Minute).Err())
}

func (m *migration) end() {
	m.Helper()
	for _, node := range []*redis.Client{m.to, m.from} {
		require.NoError(m, node.Do(m.ctx, "cluster", "setslot", m.slot, "node", m.toID).Err())
	}
}

// createIn creates a record that all of its cluster know. On a busy machine a replica may take its
// primary's place meanwhile: then it is not known what became of the record, and another is created.
func (b *bench) createIn(cluster *testenv.RedisCluster) (string, kv.Record) {
	b.Helper()
	for {
		name := b.name()
		rec, err := b.store.Create(b.ctx, name, b.signed(time.Hour))
		cluster.AwaitReady()
		if err == nil {
			_, err = b.store.Refresh(b.ctx, name, rec)
		}
		if err == nil {
			return name, rec
		}
		require.NoError(b, b.ctx.Err(), "it takes too long: %v", err)
	}
}

// Commands are sent once, so that the client never asks another node by itself.
func TestAFailoverInAClusterIsFoundSoonAfterItHasHappened(t *testing.T) {
	t.Parallel() // it mostly waits
	for fault, strike := range map[string]func(*testenv.Server){
		"a primary that is killed": (*testenv.Server).Kill,
		"a primary that hangs":     (*testenv.Server).Pause,
	} {
		t.Run(fault, func(t *testing.T) {
			t.Parallel()
			cluster := testenv.StartRedisCluster(t, 3, 1)
			b := newBench(t, cluster.Addrs()...)
			name, rec := b.createIn(cluster)
			owner := cluster.Owner(name)
			strike(owner)
			require.NotEqual(t, owner, cluster.Owner(name))
			require.Eventually(t, func() bool {
				ctx, cancel := context.WithTimeout(b.ctx, time.Second)
				defer cancel()
				_, err := b.store.Refresh(ctx, name, rec)
				return err == nil
			}, 50*time.Second, 100*time.Millisecond, "the client would look by itself once a minute")
		})
	}
}
