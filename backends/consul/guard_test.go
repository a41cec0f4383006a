//go:build unix

package consulkv_test

import (
	"errors"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/consul"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// write writes the key under the guard of rec, and reports whether Consul has
// done it.
func write(t *testing.T, s *consulkv.Store, client *api.Client, name string, rec kv.Record, key, value string) bool {
	t.Helper()
	before, _, err := client.KV().Get(key, &api.QueryOptions{RequireConsistent: true})
	require.NoError(t, err)
	done, answer, _, err := client.KV().Txn(api.KVTxnOps{
		s.Guard(name, rec),
		{Verb: api.KVSet, Key: key, Value: []byte(value)},
	}, nil)
	require.NoError(t, err)
	if done {
		require.Equal(t, value, string(pair(t, client, key).Value))
		return true
	}
	require.Contains(t, answer.Errors[0].What, "check")
	after, _, err := client.KV().Get(key, &api.QueryOptions{RequireConsistent: true})
	require.NoError(t, err)
	require.Equal(t, before, after, "a transaction that was refused has written")
	return false
}

// What is led: a store, and a term in it.
type led struct {
	s    *consulkv.Store
	term *election.Term
}

// lead elects a candidate that talks to the server at addr.
func lead(t *testing.T, addr, name string, opts *consulkv.Options, ttl time.Duration) led {
	t.Helper()
	s := consulkv.New(dial(t, addr), opts)
	c, err := election.New(s, name, &election.Options{TTL: ttl})
	require.NoError(t, err)
	term, err := c.Campaign(within(t, 2*time.Minute))
	require.NoError(t, err)
	t.Cleanup(func() {
		// A test may have taken the safe from it, or its way to the server.
		if err := term.Resign(within(t, time.Minute)); err != nil && !errors.Is(err, election.ErrLost) {
			require.ErrorContains(t, err, "will expire by itself")
		}
	})
	return led{s, term}
}

func TestALeaderThatSleptBeyondItsTermCannotWriteUnderItsGuard(t *testing.T) {
	t.Parallel() // it mostly waits
	inEachForm(t, func(t *testing.T, opts *consulkv.Options) {
		inTime(t, func(ttl time.Duration) bool {
			proxy := testenv.NewProxy(t, testenv.Consul(t))
			name, key := newName(), newName()
			client := dial(t, testenv.Consul(t))
			first := lead(t, proxy.Addr(), name, opts, ttl)
			done := write(t, first.s, client, name, first.term.Record(), key, "by the first")
			if first.term.Err() != nil {
				return false
			}
			require.True(t, done)

			proxy.BlackHole() // nothing that it would do happens
			second := lead(t, testenv.Consul(t), name, opts, time.Minute)
			proxy.Heal() // it wakes, and goes on where it was
			require.False(t, write(t, first.s, client, name, first.term.Record(), key, "late"))
			require.True(t, write(t, second.s, client, name, second.term.Record(), key, "by the second"))
			require.Greater(t, second.term.Token(), first.term.Token())
			require.ErrorIs(t, first.term.Err(), election.ErrLost)
			return true
		})
	})
}

func TestAGuardHoldsThroughAValueProclaimedAnew(t *testing.T) {
	inEachForm(t, func(t *testing.T, opts *consulkv.Options) {
		name, key := newName(), newName()
		client := dial(t, testenv.Consul(t))
		leader := lead(t, testenv.Consul(t), name, opts, time.Minute)
		before := leader.term.Record()
		for _, value := range []string{"one", "two"} {
			require.NoError(t, leader.term.Proclaim(within(t, time.Minute), value))
			require.True(t, write(t, leader.s, client, name, before, key, "before "+value))
			require.True(t, write(t, leader.s, client, name, leader.term.Record(), key, "after "+value))
		}
	})
}

func TestAGuardEndsWithAHandOver(t *testing.T) {
	inEachForm(t, func(t *testing.T, opts *consulkv.Options) {
		name, key := newName(), newName()
		client := dial(t, testenv.Consul(t))
		leader := lead(t, testenv.Consul(t), name, opts, time.Minute)
		heir := create(t, leader.s, newName(), signed("heir", time.Minute))
		var old, rec kv.Record
		eventually(t, func() (err error) { // the term may refresh in between
			old = leader.term.Record()
			rec, err = leader.s.Swap(t.Context(), name, old, heir)
			return err
		})
		require.False(t, write(t, leader.s, client, name, old, key, "late"))
		require.True(t, write(t, leader.s, client, name, rec, key, "by the heir"))
		require.NoError(t, leader.s.Delete(t.Context(), name, rec))
		require.False(t, write(t, leader.s, client, name, rec, key, "late"))
	})
}

// An empty session would match a key without one.
func TestAGuardIsNeverTrueForWhatDoesNotHoldTheSafe(t *testing.T) {
	s, client, _ := openAs(t, &consulkv.Options{MinTTL: ttl, Prefix: "guarded/"})
	name, key := newName(), newName()
	held, open := newName(), newName()
	rec := create(t, s, held, signed("v", time.Minute))
	require.NoError(t, s.Delete(t.Context(), open, create(t, s, open, signed("v", time.Minute))))
	require.True(t, write(t, s, client, held, rec, key, "held"))
	for _, other := range []string{name, open} {
		require.False(t, write(t, s, client, other, rec, key, "another safe"))
		require.False(t, write(t, s, client, other, kv.Record{}, key, "nothing"))
		require.False(t, write(t, s, client, other, kv.Record{Signature: "s", Token: 1}, key, "no lease"))
	}
	require.False(t, write(t, s, client, held, kv.Record{}, key, "nothing"))

	lock := lockOf(t, client, "guarded/"+name, 0)
	_, err := lock.Lock(nil)
	require.NoError(t, err)
	foreign, err := s.Get(t.Context(), name)
	require.NoError(t, err)
	require.False(t, write(t, s, client, name, foreign, key, "foreign"))
	require.NoError(t, lock.Unlock())
}

func TestAGuardFitsATransactionOfMoreThanKeys(t *testing.T) {
	s, client, _ := openAs(t, options)
	name, key := newName(), newName()
	rec := create(t, s, name, signed("v", time.Minute))
	for _, holds := range []bool{true, false} {
		done, _, _, err := client.Txn().Txn(api.TxnOps{
			{KV: s.Guard(name, rec)},
			{KV: &api.KVTxnOp{Verb: api.KVSet, Key: key, Value: []byte("v")}},
		}, nil)
		require.NoError(t, err)
		require.Equal(t, holds, done)
		if holds {
			require.NoError(t, s.Delete(t.Context(), name, rec))
		}
	}
}
