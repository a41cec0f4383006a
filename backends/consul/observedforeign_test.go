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

// requireForeign requires that a store takes what is at a name for somebody else's
// lock, keeps out, and leaves it as it is.
func requireForeign(t testing.TB, client *api.Client, s kv.Store, name, what string) kv.Record {
	t.Helper()
	before := pair(t, client, name)
	seen, err := s.Get(t.Context(), name)
	require.NoError(t, err, what)
	require.True(t, seen.Foreign, what)
	_, err = s.Create(t.Context(), name, signed("mine", time.Minute))
	require.ErrorIs(t, err, kv.ErrHeld, what)
	_, err = s.Refresh(t.Context(), name, seen)
	require.ErrorIs(t, err, kv.ErrInvalid, what)
	_, err = s.Swap(t.Context(), name, seen, signed("mine", time.Minute))
	require.ErrorIs(t, err, kv.ErrInvalid, what)
	require.ErrorIs(t, s.Delete(t.Context(), name, seen), kv.ErrInvalid, what)
	require.Equal(t, before, pair(t, client, name), what)
	return seen
}

// The record is dead, every observer may replace it, and no session holds its key.
func TestAStoreThatJudgesLeavesObservedRecordsAlone(t *testing.T) {
	inEachForm(t, func(t *testing.T, opts *consulkv.Options) {
		names, recs := abandoned(t, 1)
		s, client, _ := openAs(t, opts)
		for range 3 {
			time.Sleep(brief)
			require.True(t, requireForeign(t, client, s, names[0], "dead").Permanent)
			_, err := s.Refresh(t.Context(), names[0], recs[0])
			require.ErrorIs(t, err, kv.ErrStale)
			_, err = s.Swap(t.Context(), names[0], recs[0], signed("mine", time.Minute))
			require.ErrorIs(t, err, kv.ErrStale)
			require.ErrorIs(t, s.Delete(t.Context(), names[0], recs[0]), kv.ErrStale)
		}
		require.Zero(t, sessions(t, client, names[0]))
	})
}

// The safe was vacant when the create looked, and has an observed record when its
// transaction arrives.
func TestAStoreThatJudgesDoesNotOverwriteAnObservedRecordThatComesBetween(t *testing.T) {
	inEachForm(t, func(t *testing.T, opts *consulkv.Options) {
		s, _, requests := openAs(t, opts)
		name := newName()
		other, _, _ := observed(t)
		var rec kv.Record
		requests.beforeTxn(func(*http.Request) { rec = create(t, other, name, signed("theirs", time.Minute)) })
		_, err := s.Create(t.Context(), name, signed("mine", time.Minute))
		require.ErrorIs(t, err, kv.ErrHeld)
		got, err := other.Refresh(t.Context(), name, rec)
		require.NoError(t, err)
		require.Equal(t, rec, got)
	})
}

func TestObserversLeaveRecordsWithASessionAlone(t *testing.T) {
	inEachForm(t, func(t *testing.T, opts *consulkv.Options) {
		owner, client, _ := openAs(t, opts)
		s, _, _ := observed(t)
		name := newName()
		rec := create(t, owner, name, signed("theirs", time.Minute))
		require.False(t, requireForeign(t, client, s, name, "held").Permanent)
		got, err := owner.Refresh(t.Context(), name, rec)
		require.NoError(t, err)
		require.Equal(t, rec, got)

		// The key that its owner leaves behind may have a lock-delay, or be taken by
		// an api.Lock at any moment.
		require.NoError(t, owner.Delete(t.Context(), name, rec))
		require.True(t, requireForeign(t, client, s, name, "released").Permanent)
		operator{client}.remove(t, name)
		create(t, s, name, signed("mine", time.Minute))
	})
}

// Nothing changes there for longer than the text says that it lives.
func TestWhatLooksLikeAnObservedRecordIsForeign(t *testing.T) {
	s, client, _ := observed(t)
	ours := kv.EncodeObserved(kv.Record{Signature: "s", TTL: brief, Token: 1})
	stores := kv.Encode(kv.Record{Signature: "s", TTL: brief})
	session, _, err := client.Session().CreateNoChecks(&api.SessionEntry{TTL: "10m"}, nil)
	require.NoError(t, err)
	keys := map[string]*api.KVPair{
		"data":                     {Value: []byte("precious")},
		"nothing":                  {},
		"our text without flags":   {Value: []byte(ours)},
		"our text as a lock":       {Value: []byte(ours), Flags: api.LockFlagValue},
		"our text with a session":  {Value: []byte(ours), Flags: observedFlags, Session: session},
		"data with our flags":      {Value: []byte("precious"), Flags: observedFlags},
		"a store's text":           {Value: []byte(stores), Flags: api.LockFlagValue, Session: session},
		"a store's text, ours":     {Value: []byte(stores), Flags: observedFlags},
		"a text from the future":   {Value: []byte(`{"election":2,"signature":"s","ttl_ms":500,"observed":true}`), Flags: observedFlags},
		"a text without signature": {Value: []byte(`{"election":1,"ttl_ms":500,"observed":true}`), Flags: observedFlags},
	}
	run := newName()
	for what, key := range keys {
		key.Key = run + what
		if key.Session == "" {
			_, err = client.KV().Put(key, nil)
		} else {
			_, _, err = client.KV().Acquire(key, nil)
		}
		require.NoError(t, err)
	}
	for range 2 {
		for what := range keys {
			requireForeign(t, client, s, run+what, what)
		}
		time.Sleep(brief + brief/4)
	}
}

// What comes to the key while its owner looks away is never judged by the record
// that was there.
func TestAnObserverDoesNotReplaceWhatHasTakenADeadRecordsPlace(t *testing.T) {
	s, client, _ := observed(t)
	session, _, err := client.Session().CreateNoChecks(&api.SessionEntry{TTL: "10m"}, nil)
	require.NoError(t, err)
	names, _ := abandoned(t, 2, s)
	time.Sleep(brief + brief/4)
	operator{client}.put(t, names[0], "precious")
	taken := pair(t, client, names[1])
	taken.Session = session // with the very text
	held, _, err := client.KV().Acquire(taken, nil)
	require.NoError(t, err)
	require.True(t, held)
	for _, name := range names {
		before := pair(t, client, name)
		_, err := s.Create(t.Context(), name, signed("mine", time.Minute))
		require.ErrorIs(t, err, kv.ErrHeld)
		require.Equal(t, before, pair(t, client, name))
	}
}

// As the documentation says: an api.Lock refuses the key for its flags; a program
// that acquires a key without looking does not, and the owner loses its record.
func TestAnAPILockRefusesAnObservedRecord(t *testing.T) {
	s, client, _ := observed(t)
	name := newName()
	rec := create(t, s, name, signed("v", time.Minute))
	_, err := lockOf(t, client, name, 200*time.Millisecond).Lock(nil)
	require.ErrorIs(t, err, api.ErrLockConflict)
	got, err := s.Refresh(t.Context(), name, rec)
	require.NoError(t, err)
	require.Equal(t, rec, got)

	session, _, err := client.Session().CreateNoChecks(&api.SessionEntry{TTL: "10m"}, nil)
	require.NoError(t, err)
	held, _, err := client.KV().Acquire(&api.KVPair{Key: name, Value: []byte("theirs"), Session: session}, nil)
	require.NoError(t, err)
	require.True(t, held, "Consul sees a key without a session as free")
	_, err = s.Refresh(t.Context(), name, rec)
	require.ErrorIs(t, err, kv.ErrStale)
	requireForeign(t, client, s, name, "acquired")
}
