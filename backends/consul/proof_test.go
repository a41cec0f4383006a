//go:build unix

package consulkv_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election/backends/consul"
	"github.com/electkv/election/kv"
)

// renews requires that Consul renews the session as if nothing had happened.
func renews(t *testing.T, client *api.Client, session string) {
	t.Helper()
	found, _, err := client.Session().Renew(session, nil)
	require.NoError(t, err)
	require.NotNil(t, found, "the session has ended, so this proves nothing")
}

func TestARefreshIsStaleAfterAnOperatorsDeleteThoughTheSessionLives(t *testing.T) {
	s, client, _ := open(t)
	name := newName()
	rec := create(t, s, name, signed("v", time.Minute))
	_, err := client.KV().Delete(name, nil)
	require.NoError(t, err)

	renews(t, client, rec.Lease)
	_, err = s.Refresh(t.Context(), name, rec)
	require.ErrorIs(t, err, kv.ErrStale)
	renews(t, client, rec.Lease)
}

// A plain write leaves the key locked by the session of the record that it
// overwrites.
func TestARefreshIsStaleAfterAForeignWriteThoughTheSessionHoldsTheKey(t *testing.T) {
	s, client, _ := open(t)
	for _, flags := range []uint64{0, api.LockFlagValue} {
		name := newName()
		rec := create(t, s, name, signed("v", time.Minute))
		_, err := client.KV().Put(&api.KVPair{Key: name, Value: []byte("mine now"), Flags: flags}, nil)
		require.NoError(t, err)

		require.Equal(t, rec.Lease, pair(t, client, name).Session)
		renews(t, client, rec.Lease)
		_, err = s.Refresh(t.Context(), name, rec)
		require.ErrorIs(t, err, kv.ErrStale)
		require.ErrorIs(t, s.Delete(t.Context(), name, rec), kv.ErrStale)
		require.Equal(t, "mine now", string(pair(t, client, name).Value))

		got, err := s.Get(t.Context(), name)
		require.NoError(t, err)
		require.True(t, got.Foreign)
		require.False(t, got.Permanent, "a session holds it")
	}
}

func TestARefreshIsStaleOnceAnotherHasTheDeletedKey(t *testing.T) {
	s, client, _ := open(t)
	name := newName()
	old := create(t, s, name, signed("old", time.Minute))
	_, err := client.KV().Delete(name, nil)
	require.NoError(t, err)
	rec := create(t, s, name, signed("new", time.Minute))

	renews(t, client, old.Lease)
	_, err = s.Refresh(t.Context(), name, old)
	require.ErrorIs(t, err, kv.ErrStale)
	got, err := s.Get(t.Context(), name)
	require.NoError(t, err)
	require.Equal(t, rec, got)
}

// What is written back is the same text, but by another write.
func TestARecordThatAnOperatorRestoredIsAnother(t *testing.T) {
	s, client, _ := open(t)
	name := newName()
	rec := create(t, s, name, signed("v", time.Minute))
	saved := pair(t, client, name)
	_, err := client.KV().Delete(name, nil)
	require.NoError(t, err)
	held, _, err := client.KV().Acquire(saved, nil)
	require.NoError(t, err)
	require.True(t, held)

	got, err := s.Get(t.Context(), name)
	require.NoError(t, err)
	require.Equal(t, rec.Signature, got.Signature)
	require.Greater(t, got.Token, rec.Token)
	_, err = s.Refresh(t.Context(), name, rec)
	require.ErrorIs(t, err, kv.ErrStale)
}

func TestAnEndedSessionIsStale(t *testing.T) {
	s, client, _ := open(t)
	name := newName()
	rec := create(t, s, name, signed("v", time.Minute))
	_, err := client.Session().Destroy(rec.Lease, nil)
	require.NoError(t, err)
	_, err = s.Refresh(t.Context(), name, rec)
	require.ErrorIs(t, err, kv.ErrStale)
	_, err = s.Get(t.Context(), name)
	require.ErrorIs(t, err, kv.ErrVacant)
}

// The one that is made beside a delete is that of the next record.
func TestRecordsThatComeAndGoLeaveSessionsThatExpire(t *testing.T) {
	t.Parallel()
	const ttl, cycles = 5 * time.Second, 20 // longer than a busy machine stands still
	s, client, _ := open(t)
	name := newName()
	seen := make(map[string]bool)
	for range cycles {
		rec := create(t, s, name, signed("v", ttl))
		require.False(t, seen[rec.Lease], "each has a session of its own")
		seen[rec.Lease] = true
		for range 3 {
			_, err := s.Create(t.Context(), name, signed("late", ttl))
			require.ErrorIs(t, err, kv.ErrHeld)
		}
		require.NoError(t, s.Delete(t.Context(), name, rec))
	}
	// One for each record, and one that was ready too late for its own: then that had another made.
	require.Less(t, sessions(t, client, name), 2*cycles)
	require.Equal(t, uint64(api.LockFlagValue), pair(t, client, name).Flags, "the key stays, and stays a lock")
	require.Eventually(t, func() bool { return sessions(t, client, name) == 0 }, time.Minute, 100*time.Millisecond)
}

// afterARecord creates a record and deletes it, and returns the session that was made beside
// that, if any.
func afterARecord(t *testing.T, s kv.Store, client *api.Client, name string) (ready string) {
	t.Helper()
	rec := create(t, s, name, signed("v", time.Minute))
	require.NoError(t, s.Delete(t.Context(), name, rec))
	all, _, err := client.Session().List(&api.QueryOptions{RequireConsistent: true})
	require.NoError(t, err)
	for _, one := range all {
		if one.Name == "election: "+name && one.ID != rec.Lease {
			ready = one.ID
		}
	}
	return ready
}

// A delete does not wait for long for a session that is made beside it: on a busy machine it is
// often too late.
func TestASessionThatIsReadyIsTaken(t *testing.T) {
	s, client, _ := open(t)
	for tried := 1; ; tried++ {
		name := newName()
		ready := afterARecord(t, s, client, name)
		rec := create(t, s, name, signed("v", time.Minute))
		_, err := s.Refresh(t.Context(), name, rec)
		require.NoError(t, err)
		if rec.Lease == ready {
			return
		}
		require.Less(t, tried, 20, "none is taken")
	}
}

// A create that finds the session that was ready gone has another one made.
func TestASessionThatWasReadyAndIsGoneIsNotMissed(t *testing.T) {
	s, client, _ := open(t)
	name := newName()
	ready := afterARecord(t, s, client, name)
	for tried := 1; ready == ""; tried++ {
		require.Less(t, tried, 20, "none is made")
		ready = afterARecord(t, s, client, name)
	}
	_, err := client.Session().Destroy(ready, nil)
	require.NoError(t, err)
	rec := create(t, s, name, signed("v", time.Minute))
	require.NotEqual(t, ready, rec.Lease)
	_, err = s.Refresh(t.Context(), name, rec)
	require.NoError(t, err)
}

// The safe was vacant when each of them looked.
func TestTheLosersOfARaceLeaveNoSessions(t *testing.T) {
	s, client, requests := open(t)
	name := newName()
	var winner kv.Record
	requests.beforeTxn(func(*http.Request) {
		winner = create(t, consulkv.New(client, options), name, signed("first", time.Minute))
	})
	_, err := s.Create(t.Context(), name, signed("second", time.Minute))
	require.ErrorIs(t, err, kv.ErrHeld)
	require.Equal(t, 1, sessions(t, client, name))
	require.NoError(t, s.Delete(t.Context(), name, winner))

	requests.beforeTxn(func(*http.Request) {
		brief := create(t, consulkv.New(client, options), name, signed("brief", time.Minute))
		require.NoError(t, s.Delete(t.Context(), name, brief))
	})
	rec := create(t, s, name, signed("third", time.Minute)) // the safe was vacant again
	require.NoError(t, s.Delete(t.Context(), name, rec))
}

func TestAValueChangeOnTheWayDoesNotStopADelete(t *testing.T) {
	s, _, requests := open(t)
	name := newName()
	rec := create(t, s, name, signed("v", time.Minute))
	requests.beforeTxn(func(*http.Request) {
		next := rec
		next.Value = "published meanwhile"
		_, err := s.Swap(t.Context(), name, rec, next)
		require.NoError(t, err)
	})
	require.NoError(t, s.Delete(t.Context(), name, rec))
	_, err := s.Get(t.Context(), name)
	require.ErrorIs(t, err, kv.ErrVacant)
}

// In its default mode a leader that was replaced without knowing it yet answers
// from what it has.
func TestEveryReadIsConsistent(t *testing.T) {
	for _, opts := range []*consulkv.Options{options, plain} {
		s, _, requests := openAs(t, opts)
		name := newName()
		rec := create(t, s, name, signed("v", time.Minute))
		for range s.Watch(t.Context(), name) {
			break
		}
		_, err := s.Refresh(t.Context(), name, rec)
		require.NoError(t, err)
		rec, err = s.Swap(t.Context(), name, rec, create(t, s, newName(), signed("heir", time.Minute)))
		require.NoError(t, err)
		require.NoError(t, s.Delete(t.Context(), name, rec))
		require.Zero(t, requests.lax.Load())
		require.Positive(t, requests.count.Load())
	}
}
