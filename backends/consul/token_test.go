//go:build unix

package consulkv_test

import (
	"bytes"
	"io"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election/backends/consul"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// eventually calls f until it succeeds: a server that starts refuses for a
// moment.
func eventually(t *testing.T, f func() error) {
	t.Helper()
	var err error
	for ctx := within(t, time.Minute); ctx.Err() == nil; time.Sleep(50 * time.Millisecond) {
		if err = f(); err == nil {
			return
		}
	}
	require.NoError(t, err)
}

func TestTokensGrowAcrossEverythingThatCanHappenToAKey(t *testing.T) {
	t.Parallel() // it mostly waits
	inEachForm(t, tokensGrowAcrossEverythingThatCanHappenToAKey)
}

func tokensGrowAcrossEverythingThatCanHappenToAKey(t *testing.T, opts *consulkv.Options) {
	server := testenv.StartConsul(t)
	client := dial(t, server.Addr())
	s := consulkv.New(client, opts)
	name := newName()
	var rec kv.Record
	publish := func() {
		next := rec
		next.Value += "+"
		changed, err := s.Swap(t.Context(), name, rec, next)
		require.NoError(t, err)
		require.Equal(t, rec.Token, changed.Token, "a change of value keeps the token")
		require.NotEqual(t, rec.Revision, changed.Revision)
		rec = changed
	}
	var last uint64
	for _, step := range []struct {
		what string
		do   func()
	}{
		{"the first record", func() {}},
		{"a delete", func() { require.NoError(t, s.Delete(t.Context(), name, rec)) }},
		{"a change of value and a delete", func() {
			publish()
			publish()
			require.NoError(t, s.Delete(t.Context(), name, rec))
		}},
		{"the key's deletion", func() {
			publish()
			_, err := client.KV().Delete(name, nil)
			require.NoError(t, err)
		}},
		{"an api.Lock", func() {
			require.NoError(t, s.Delete(t.Context(), name, rec))
			lock := lockOf(t, client, name, 0)
			_, err := lock.Lock(nil)
			require.NoError(t, err)
			require.NoError(t, lock.Unlock())
		}},
		{"a restart of the server", func() {
			require.NoError(t, s.Delete(t.Context(), name, rec))
			server.Restart()
		}},
		{"a restored snapshot", func() {
			saved := snapshot(t, client)
			publish()
			require.NoError(t, s.Delete(t.Context(), name, rec))
			between := create(t, s, name, signed("between", time.Minute))
			require.NoError(t, client.Snapshot().Restore(nil, bytes.NewReader(saved)))
			eventually(t, func() error { _, err := s.Get(t.Context(), name); return err })
			_, err := s.Refresh(t.Context(), name, between)
			require.ErrorIs(t, err, kv.ErrStale)
			last = max(last, between.Token)
			restored, err := s.Get(t.Context(), name)
			require.NoError(t, err)
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

func snapshot(t *testing.T, client *api.Client) []byte {
	t.Helper()
	from, _, err := client.Snapshot().Save(nil)
	require.NoError(t, err)
	defer func() { require.NoError(t, from.Close()) }()
	saved, err := io.ReadAll(from)
	require.NoError(t, err)
	return saved
}

func TestARecordOutlivesARestartOfTheServer(t *testing.T) {
	server := testenv.StartConsul(t)
	s := consulkv.New(dial(t, server.Addr()), options)
	name := newName()
	rec := create(t, s, name, signed("v", 5*time.Second))
	server.Restart()
	eventually(t, func() error { _, err := s.Refresh(t.Context(), name, rec); return err })
	got, err := s.Get(t.Context(), name)
	require.NoError(t, err)
	require.Equal(t, rec, got)
}

func TestARecordOutlivesTheLeaderOfTheServers(t *testing.T) {
	t.Parallel() // it mostly waits
	servers := cluster(t)
	leader := servers.Leader()
	addr := servers.Nodes[0].Addr()
	if servers.Nodes[0] == leader {
		addr = servers.Nodes[1].Addr()
	}
	s := consulkv.New(dial(t, addr), options)
	name := newName()
	rec := create(t, s, name, signed("v", 20*time.Second))
	start := time.Now()
	leader.Kill()
	eventually(t, func() error { _, err := s.Refresh(t.Context(), name, rec); return err })
	t.Logf("the first refresh after %v", time.Since(start))
	require.NoError(t, s.Delete(within(t, time.Minute), name, rec))
	next := create(t, s, name, signed("v", time.Minute))
	require.Greater(t, next.Token, rec.Token)
}
