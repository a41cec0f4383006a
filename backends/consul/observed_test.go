//go:build unix

package consulkv_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/consul"
	"github.com/electkv/election/internal/observer/observertest"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvtest"
)

// brief is the shortest TTL that observers judge.
const brief = 500 * time.Millisecond

// observedFlags are what says that a key is an observed record.
const observedFlags = 0x6f62736572766564

func TestAnObservedStoreKeepsTheContract(t *testing.T) {
	testenv.Long(t)
	addr := testenv.Consul(t)
	open, count := dialEach([]string{addr})
	others := operator{dial(t, addr)}
	store := func(t testing.TB) kv.Store { return consulkv.NewObserved(open(t), nil) }
	kvtest.Run(t, kvtest.Backend{Open: store, TTL: ttl, Put: others.put, Remove: others.remove, Requests: count})
}

// observed returns an observed store on the shared server, with the client beneath it.
func observed(t testing.TB) (*consulkv.Observed, *api.Client, *wire) {
	t.Helper()
	client, requests := dialCounted(t, testenv.Consul(t), nil)
	return consulkv.NewObserved(client, nil), client, requests
}

// abandoned puts records with the shortest TTL into new safes, whose owner is not
// heard of again, and has every store see them.
func abandoned(t testing.TB, n int, observers ...kv.Store) (names []string, recs []kv.Record) {
	t.Helper()
	owner, _, _ := observed(t)
	for range n {
		name := newName()
		names, recs = append(names, name), append(recs, create(t, owner, name, signed("abandoned", brief)))
	}
	for _, s := range observers {
		for _, name := range names {
			_, err := s.Get(within(t, time.Minute), name)
			require.NoError(t, err)
		}
	}
	return names, recs
}

func publish(t testing.TB, s kv.Store, name string, rec kv.Record, value string) kv.Record {
	t.Helper()
	rec, err := s.Swap(within(t, time.Minute), name, rec, kv.Record{Signature: rec.Signature, Value: value})
	require.NoError(t, err)
	return rec
}

func TestAnObservedRecordHasNoSessionAndTakesItsTokenAlong(t *testing.T) {
	s, client, _ := observed(t)
	name := newName()
	rec := create(t, s, name, signed("v", time.Minute))
	first := pair(t, client, name)
	require.Empty(t, first.Session)
	require.EqualValues(t, observedFlags, first.Flags)
	require.Equal(t, first.ModifyIndex, rec.Token)
	require.Zero(t, kv.DecodeObserved(string(first.Value)).Token, "it is the index of this write")
	last := first.ModifyIndex
	for range 3 {
		for range 2 { // the second says nothing new
			now, err := s.Refresh(t.Context(), name, rec)
			require.NoError(t, err)
			require.Equal(t, rec, now)
			at := pair(t, client, name)
			require.Greater(t, at.ModifyIndex, last, "a refresh that is no write")
			last = at.ModifyIndex
		}
		rec = publish(t, s, name, rec, rec.Value+"+")
		at := pair(t, client, name)
		require.Empty(t, at.Session)
		require.Greater(t, at.ModifyIndex, last)
		require.Equal(t, first.CreateIndex, at.CreateIndex)
		require.Equal(t, rec.Token, kv.DecodeObserved(string(at.Value)).Token)
		last = at.ModifyIndex
		other, _, _ := observed(t)
		seen, err := other.Get(t.Context(), name)
		require.NoError(t, err)
		require.Equal(t, rec, seen)
	}
	require.NoError(t, s.Delete(t.Context(), name, rec))
	got, _, err := client.KV().Get(name, nil)
	require.NoError(t, err)
	require.Nil(t, got, "nothing is left")
}

func TestObservedTokensAndRevisionsGrowAcrossEverythingThatCanHappenToAKey(t *testing.T) {
	t.Parallel() // it mostly waits
	server := testenv.StartConsul(t)
	client := dial(t, server.Addr())
	s := consulkv.NewObserved(client, nil)
	name := newName()
	var rec kv.Record
	var last uint64
	for _, step := range []struct {
		what string
		do   func()
	}{
		{"the first record", func() {}},
		{"a delete", func() { require.NoError(t, s.Delete(t.Context(), name, rec)) }},
		{"the key's deletion", func() {
			rec = publish(t, s, name, rec, "published")
			operator{client}.remove(t, name)
		}},
		{"a restart of the server", func() {
			require.NoError(t, s.Delete(t.Context(), name, rec))
			server.Restart()
		}},
		{"a restored snapshot", func() {
			saved := snapshot(t, client)
			require.NoError(t, s.Delete(t.Context(), name, rec))
			between := create(t, s, name, signed("between", time.Minute))
			last = between.Token
			require.NoError(t, client.Snapshot().Restore(nil, bytes.NewReader(saved)))
			eventually(t, func() error { _, err := s.Get(t.Context(), name); return err })
			_, err := s.Refresh(t.Context(), name, between)
			require.ErrorIs(t, err, kv.ErrStale)
			restored, err := s.Get(t.Context(), name)
			require.NoError(t, err)
			require.Equal(t, rec.Token, restored.Token)
			require.NoError(t, s.Delete(t.Context(), name, restored))
		}},
	} {
		step.do()
		eventually(t, func() (err error) {
			rec, err = s.Create(t.Context(), name, signed("v", time.Minute))
			return err
		})
		require.Greater(t, rec.Token, last, "after %s", step.what)
		require.Equal(t, pair(t, client, name).ModifyIndex, rec.Token)
		last = rec.Token
	}
}

func TestObserversJudge(t *testing.T) {
	observertest.Run(t, func(t testing.TB) kv.Store { s, _, _ := observed(t); return s })
}

func TestObserversRefuseTTLsWithoutARequest(t *testing.T) {
	s, _, requests := observed(t)
	_, err := s.Create(t.Context(), newName(), signed("v", brief-1))
	require.ErrorIs(t, err, kv.ErrInvalid)
	require.Zero(t, requests.count.Load())
	_, err = election.New(consulkv.NewObserved(nil, nil), "jobs", nil)
	require.ErrorIs(t, err, kv.ErrInvalid)
	require.ErrorContains(t, err, "client is nil")
}
