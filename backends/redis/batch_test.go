package rediskv_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election/backends/redis"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvtest"
)

// hold creates so many records.
func (b *bench) hold(n int, ttl time.Duration) []kv.Held {
	b.Helper()
	records := make([]kv.Held, n)
	for i := range records {
		name := b.name()
		records[i] = kv.Held{Name: name, Record: b.create(name, ttl)}
	}
	return records
}

// everyForm runs a test with each way in which records are refreshed together, or not.
func everyForm(t *testing.T, test func(b *bench)) {
	t.Helper()
	inBothForms(t, test)
	t.Run("cluster", func(t *testing.T) { test(newBench(t, testenv.StartRedisCluster(t, 3, 0).Addrs()...)) })
}

func TestEachOfManyRecordsIsToldWhatARefreshOfItSays(t *testing.T) {
	everyForm(t, func(b *bench) {
		held := func(what string, rec kv.Record) kv.Held { return kv.Held{Name: b.name() + what, Record: rec} }
		own := func(what string, rec kv.Record) kv.Held {
			h := held(what, rec)
			var err error
			h.Record, err = b.store.Create(b.ctx, h.Name, rec)
			require.NoError(b, err)
			return h
		}
		var records []kv.Held
		want := make(map[string]error)
		add := func(h kv.Held, err error) { records, want[h.Name] = append(records, h), err }

		for i := range 3 {
			add(own(fmt.Sprint("own", i), b.signed(time.Hour)), nil)
		}
		odd := b.signed(time.Hour + time.Nanosecond)
		odd.Signature, odd.Value, odd.Note = "<s>&\u2028\"\\\n\x7fé", "\x00\xff", "<n>\u2029\t"
		add(own("odd", odd), nil)
		long := b.signed(time.Hour)
		long.Value = strings.Repeat("v", 100_000)
		add(own("long", long), nil)

		gone := own("deleted", b.signed(time.Hour))
		require.NoError(b, b.store.Delete(b.ctx, gone.Name, gone.Record))
		add(gone, kv.ErrStale)
		taken := own("taken", b.signed(time.Hour))
		_, err := b.store.Swap(b.ctx, taken.Name, taken.Record, b.signed(time.Hour))
		require.NoError(b, err)
		add(taken, kv.ErrStale)
		late := own("another token", b.signed(time.Hour))
		require.NoError(b, b.store.Delete(b.ctx, late.Name, late.Record))
		_, err = b.store.Create(b.ctx, late.Name, late.Record)
		require.NoError(b, err)
		add(late, kv.ErrStale)

		str := own("string", b.signed(time.Hour))
		require.NoError(b, b.other.Set(b.ctx, str.Name, "host-7", 0).Err())
		add(str, kv.ErrStale)
		hash := own("hash", b.signed(time.Hour))
		require.NoError(b, b.other.Del(b.ctx, hash.Name).Err())
		require.NoError(b, b.other.HSet(b.ctx, hash.Name, "field", "value").Err())
		add(hash, kv.ErrStale)

		published := own("published", b.signed(time.Hour))
		fresh := b.publish(published.Name, published.Record, "another value")
		add(published, nil)
		add(kv.Held{Name: "", Record: b.signed(time.Hour)}, kv.ErrInvalid)
		add(held("}", b.signed(time.Hour)), kv.ErrInvalid)
		add(held("foreign", kv.Record{Value: "v", Foreign: true}), kv.ErrInvalid)
		add(held("unsigned", kv.Record{}), kv.ErrInvalid)
		if !b.plain { // nothing tells of it there but the other key
			stripped := own("without a TTL", b.signed(time.Hour))
			require.NoError(b, b.other.Persist(b.ctx, stripped.Name).Err())
			add(stripped, nil)
			pretty := own("reformatted", b.signed(time.Hour))
			text := strings.Replace(b.other.Get(b.ctx, pretty.Name).Val(), "{", "{ ", 1)
			require.NoError(b, b.other.Set(b.ctx, pretty.Name, text, time.Minute).Err())
			add(pretty, nil)
		}

		before := make(map[string]int64)
		for _, h := range records {
			before[h.Name] = b.expiry(h.Name)
		}
		for i, v := range kvtest.RefreshAll(b, b.ctx, b.store, records) {
			h := records[i]
			if err := want[h.Name]; err != nil {
				require.ErrorIs(b, v.Err, err, h.Name)
				require.Equal(b, before[h.Name], b.expiry(h.Name), h.Name)
				_, single := b.store.Refresh(b.ctx, h.Name, h.Record)
				require.Equal(b, single.Error(), v.Err.Error())
				require.Zero(b, v.Record)
				continue
			}
			require.NoError(b, v.Err, h.Name)
			rec := h.Record
			if h.Name == published.Name {
				rec = fresh
			}
			require.Equal(b, rec, v.Record, h.Name)
			require.Equal(b, rec, b.get(h.Name))
			require.Greater(b, b.left(h.Name), 59*time.Minute, h.Name)
		}
		require.Equal(b, "host-7", b.other.Get(b.ctx, str.Name).Val())
		require.Zero(b, b.other.Exists(b.ctx, gone.Name).Val())
	})
}

func TestNoRecordsAreRefreshedWithoutARequest(t *testing.T) {
	b := newBench(t, testenv.Redis(t))
	var sent requests
	require.Empty(t, kvtest.RefreshAll(b, b.ctx, rediskv.New(sent.count(dial(t, b.addr)), nil), nil))
	require.Zero(t, sent.Load())
}

func TestManyRecordsAreRefreshedByFewScripts(t *testing.T) {
	everyForm(t, func(b *bench) {
		var sent requests
		client := sent.count(b.another())
		store := rediskv.New(client, &rediskv.Options{Plain: b.plain})
		records := b.hold(250, time.Hour)
		for _, h := range records {
			require.NoError(b, b.shorten(h.Name, time.Minute))
		}
		kvtest.RefreshAll(b, b.ctx, store, records) // the server knows the script from now on
		for _, h := range records {
			require.Greater(b, b.left(h.Name), 59*time.Minute)
			require.NoError(b, b.shorten(h.Name, time.Minute))
		}
		before := sent.Load()
		for i, v := range kvtest.RefreshAll(b, b.ctx, store, records) {
			require.NoError(b, v.Err)
			require.Equal(b, records[i].Record, v.Record)
			require.Greater(b, b.left(records[i].Name), 59*time.Minute)
		}
		want := int64(2)
		if _, cluster := client.(*redis.ClusterClient); cluster || b.plain {
			want = 250
		}
		require.Equal(b, want, sent.Load()-before)
	})
}

// another returns another client of the bench's servers.
func (b *bench) another() redis.UniversalClient {
	if cluster, ok := b.other.(*redis.ClusterClient); ok {
		return dial(b, cluster.Options().Addrs...)
	}
	return dial(b, b.addr)
}

// shorten has a record expire sooner, at one instant with what is beside it.
func (b *bench) shorten(name string, ttl time.Duration) error {
	at := time.Now().Add(ttl).UnixMilli()
	_, err := b.other.TxPipelined(b.ctx, func(p redis.Pipeliner) error {
		p.Do(b.ctx, "pexpireat", name, at)
		if b.plain {
			p.Do(b.ctx, "pexpireat", beside(name), at)
		}
		return nil
	})
	return err
}

// A user who may not touch one of the keys may not send the script at all.
func TestARecordThatTheUserMayNotTouchHoldsUpNoOther(t *testing.T) {
	server := testenv.StartRedis(t)
	b := newBench(t, server.Addr())
	mine, closed := b.hold(3, time.Hour), b.name()
	records := append(mine, kv.Held{Name: closed, Record: b.create(closed, time.Hour)})
	words := []any{"acl", "setuser", "candidate", "on", ">secret", "+@all", "&*"}
	for _, h := range mine {
		words = append(words, "~"+h.Name)
	}
	require.NoError(t, b.other.Do(b.ctx, words...).Err())
	store := rediskv.New(b.client(&redis.Options{Addr: server.Addr(), Username: "candidate", Password: "secret"}), nil)
	told := kvtest.RefreshAll(b, b.ctx, store, records)
	for i, h := range mine {
		require.NoError(t, told[i].Err)
		require.Equal(t, h.Record, told[i].Record)
	}
	require.ErrorContains(t, told[3].Err, "NOPERM")
	b.unknown(told[3].Err)
}

// A client may not know that its server is a cluster's.
func TestManyRecordsAreRefreshedThroughAPlainClientOfACluster(t *testing.T) {
	cluster := testenv.StartRedisCluster(t, 3, 0)
	b := newBench(t, cluster.Addrs()...)
	var records []kv.Held
	for len(records) < 5 {
		if h := b.hold(1, time.Hour)[0]; cluster.Owner(h.Name) == cluster.Nodes[0] {
			records = append(records, h)
		}
	}
	store := rediskv.New(b.client(&redis.Options{Addr: cluster.Nodes[0].Addr(), ReadTimeout: time.Minute}), nil)
	for i, v := range kvtest.RefreshAll(b, b.ctx, store, records) {
		require.NoError(t, v.Err)
		require.Equal(t, records[i].Record, v.Record)
	}
}

func TestANodeOfAClusterThatHangsHoldsUpNoRecordsButItsOwn(t *testing.T) {
	t.Parallel() // it mostly waits
	cluster := testenv.StartRedisCluster(t, 3, 0)
	b := newBench(t, cluster.Addrs()...)
	records := b.hold(150, time.Hour)
	hung := cluster.Owner(records[0].Name)
	away := make(map[string]bool)
	for _, h := range records {
		away[h.Name] = cluster.Owner(h.Name) == hung
	}
	hung.Pause()
	defer hung.Continue()
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	var mu sync.Mutex
	left := 0
	for _, h := range records {
		if !away[h.Name] {
			left++
		}
	}
	b.store.RefreshAll(ctx, records, func(i int, _ kv.Record, err error) {
		mu.Lock()
		defer mu.Unlock()
		if away[records[i].Name] {
			require.ErrorIs(t, err, context.Canceled)
			return
		}
		require.NoError(t, err)
		if left--; left == 0 {
			cancel() // all others have been told
		}
	})
	require.Zero(t, left)
}

func TestManyRecordsAreToldOfTheEndOfTheContext(t *testing.T) {
	server := testenv.StartRedis(t)
	b := newBench(t, server.Addr())
	records := b.hold(250, time.Hour)
	why := errors.New("the caller thought better of it")
	ended, cancel := context.WithCancelCause(b.ctx)
	cancel(why)
	for _, v := range kvtest.RefreshAll(b, ended, b.store, records) {
		require.ErrorIs(t, v.Err, why)
		b.unknown(v.Err)
	}
	server.Pause()
	defer server.Continue()
	ctx, stop := context.WithTimeout(b.ctx, 200*time.Millisecond)
	defer stop()
	start := time.Now()
	for _, v := range kvtest.RefreshAll(b, ctx, b.store, records) {
		require.ErrorIs(t, v.Err, context.DeadlineExceeded)
		b.unknown(v.Err)
	}
	require.Less(t, time.Since(start), 30*time.Second)
}

// A replica writes nothing, so no record of its is confirmed.
func TestManyRecordsAreNotRefreshedByAServerThatDoesNotWrite(t *testing.T) {
	server := testenv.StartRedis(t)
	b := newBench(t, server.Addr())
	records := b.hold(150, time.Hour)
	var sent requests
	store := rediskv.New(sent.count(dial(t, server.Addr())), nil)
	kvtest.RefreshAll(b, b.ctx, store, records)
	require.NoError(t, b.other.ConfigSet(b.ctx, "min-replicas-to-write", "1").Err())
	before := sent.Load()
	for _, v := range kvtest.RefreshAll(b, b.ctx, store, records) {
		require.ErrorContains(t, v.Err, "NOREPLICAS")
		b.unknown(v.Err)
	}
	require.Equal(t, int64(2), sent.Load()-before, "what refuses all is not asked for each")
}
