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

// lockOf returns an api.Lock on the key that gives up after a while.
func lockOf(t *testing.T, client *api.Client, key string, wait time.Duration) *api.Lock {
	t.Helper()
	lock, err := client.LockOpts(&api.LockOptions{
		Key: key, Value: []byte("host-7"), SessionTTL: "10s",
		LockTryOnce: wait > 0, LockWaitTime: wait,
	})
	require.NoError(t, err)
	return lock
}

func TestTheHolderOfAnAPILockIsForeignAndKeepsUsOut(t *testing.T) {
	inEachForm(t, func(t *testing.T, opts *consulkv.Options) {
		s, client, _ := openAs(t, opts)
		name := newName()
		lock := lockOf(t, client, name, 0)
		lost, err := lock.Lock(nil)
		require.NoError(t, err)

		got, err := s.Get(t.Context(), name)
		require.NoError(t, err)
		require.True(t, got.Foreign)
		require.Equal(t, "host-7", got.Value)
		require.False(t, got.Permanent)
		_, err = s.Create(t.Context(), name, signed("v", time.Minute))
		require.ErrorIs(t, err, kv.ErrHeld)
		require.NotContains(t, err.Error(), "lock-delay")
		_, err = s.Refresh(t.Context(), name, got)
		require.ErrorIs(t, err, kv.ErrInvalid)
		require.ErrorIs(t, s.Delete(t.Context(), name, got), kv.ErrInvalid)
		require.Zero(t, sessions(t, client, name))
		select {
		case <-lost:
			require.Fail(t, "the api.Lock was lost")
		default:
		}

		require.NoError(t, lock.Unlock())
		require.Equal(t, "host-7", string(pair(t, client, name).Value), "a released lock keeps its value")
		_, err = s.Get(t.Context(), name)
		require.ErrorIs(t, err, kv.ErrVacant)
		rec := create(t, s, name, signed("v", time.Minute))
		require.NoError(t, s.Delete(t.Context(), name, rec))
	})
}

func TestOurRecordKeepsAnAPILockOutUntilItIsDeleted(t *testing.T) {
	inEachForm(t, func(t *testing.T, opts *consulkv.Options) {
		s, client, _ := openAs(t, opts)
		name := newName()
		rec := create(t, s, name, signed("v", time.Minute))
		tried, err := lockOf(t, client, name, 200*time.Millisecond).Lock(nil)
		require.NoError(t, err, "no conflict: it takes the key for a lock")
		require.Nil(t, tried)

		// One that waits through a publication and a hand-over.
		locked := make(chan error, 1)
		lock := lockOf(t, client, name, 0)
		go func() {
			_, err := lock.Lock(nil)
			locked <- err
		}()
		next := rec
		next.Value = "published"
		rec, err = s.Swap(t.Context(), name, rec, next)
		require.NoError(t, err)
		rec, err = s.Swap(t.Context(), name, rec, signed("taken over", time.Minute))
		require.NoError(t, err)
		held := pair(t, client, name)
		require.NotZero(t, held.LockIndex, "a plain write would have reset it")
		require.Equal(t, uint64(api.LockFlagValue), held.Flags)
		time.Sleep(300 * time.Millisecond)
		require.Empty(t, locked, "the api.Lock got a key that is held")

		require.NoError(t, s.Delete(t.Context(), name, rec))
		select {
		case err := <-locked:
			require.NoError(t, err)
		case <-within(t, 30*time.Second).Done():
			require.Fail(t, "the api.Lock does not get the key")
		}
		_, err = s.Create(t.Context(), name, signed("v", time.Minute))
		require.ErrorIs(t, err, kv.ErrHeld)
		require.NoError(t, lock.Unlock())
		require.NoError(t, lock.Destroy(), "it can clean up behind us")
	})
}

func TestALockDelayIsToldApartAndPasses(t *testing.T) {
	t.Parallel() // it mostly waits
	inEachForm(t, func(t *testing.T, opts *consulkv.Options) {
		for try := 1; !aLockDelayIsToldApart(t, opts); try++ {
			require.Less(t, try, 5, "this machine is too busy to create anything within a lock-delay")
		}
	})
}

// aLockDelayIsToldApart reports whether a create was refused for it.
func aLockDelayIsToldApart(t *testing.T, opts *consulkv.Options) bool {
	t.Helper()
	s, client, _ := openAs(t, opts)
	name := newName()
	session, _, err := client.Session().CreateNoChecks(&api.SessionEntry{TTL: "10s", LockDelay: 3 * time.Second}, nil)
	require.NoError(t, err)
	held, _, err := client.KV().Acquire(&api.KVPair{Key: name, Flags: api.LockFlagValue, Session: session}, nil)
	require.NoError(t, err)
	require.True(t, held)
	start := time.Now()
	_, err = client.Session().Destroy(session, nil)
	require.NoError(t, err)

	_, err = s.Get(t.Context(), name)
	require.ErrorIs(t, err, kv.ErrVacant)
	refused := 0
	for ctx := within(t, time.Minute); ; time.Sleep(100 * time.Millisecond) {
		rec, err := s.Create(ctx, name, signed("v", time.Minute))
		if err == nil {
			require.NoError(t, s.Delete(ctx, name, rec))
			break
		}
		require.ErrorIs(t, err, kv.ErrHeld)
		require.Contains(t, err.Error(), "lock-delay")
		require.Zero(t, sessions(t, client, name))
		refused++
	}
	require.GreaterOrEqual(t, time.Since(start), 2900*time.Millisecond)
	return refused > 0
}

func TestOurOwnDeadRecordHasNoLockDelayToSpeakOf(t *testing.T) {
	s, client, _ := open(t)
	name := newName()
	rec := create(t, s, name, signed("v", time.Minute))
	info, _, err := client.Session().Info(rec.Lease, nil)
	require.NoError(t, err)
	require.Equal(t, time.Millisecond, info.LockDelay)
	require.Equal(t, api.SessionBehaviorRelease, info.Behavior)
	require.Empty(t, info.Checks)
	require.Empty(t, info.NodeChecks)
	require.Empty(t, info.ServiceChecks)
}

// strangers are keys that other programs use, some with a session of theirs.
var strangers = []struct {
	who     string
	flags   uint64
	locked  bool
	content string
}{
	{who: "plain data", content: "a setting"},
	{who: "an empty key"},
	{who: "a semaphore", flags: api.SemaphoreFlagValue, content: `{"Limit":1,"Holders":{}}`},
	{who: "a contender for a semaphore", flags: api.SemaphoreFlagValue, locked: true},
	{who: "Patroni", locked: true, content: "member-1"},
	{who: "litefs", locked: true, content: `{"hostname":"h","advertise-url":"u"}`},
	{who: "our own text without the lock flags", content: `{"election":1,"signature":"s","ttl_ms":1000}`},
	{who: "our own text, locked without the lock flags", locked: true, content: `{"election":1,"signature":"s","ttl_ms":1000}`},
}

func TestKeysOfOthersAreReportedAndNeverChanged(t *testing.T) {
	inEachForm(t, func(t *testing.T, opts *consulkv.Options) {
		s, client, _ := openAs(t, opts)
		for _, stranger := range strangers {
			t.Run(stranger.who, func(t *testing.T) {
				name := newName()
				written := &api.KVPair{Key: name, Flags: stranger.flags, Value: []byte(stranger.content)}
				put := func() (bool, *api.WriteMeta, error) { return client.KV().CAS(written, nil) }
				if stranger.locked {
					session, _, err := client.Session().CreateNoChecks(&api.SessionEntry{TTL: "1m"}, nil)
					require.NoError(t, err)
					written.Session = session
					put = func() (bool, *api.WriteMeta, error) { return client.KV().Acquire(written, nil) }
				}
				done, _, err := put()
				require.NoError(t, err)
				require.True(t, done)
				before := pair(t, client, name)

				got, err := s.Get(t.Context(), name)
				require.NoError(t, err)
				require.True(t, got.Foreign)
				require.Equal(t, stranger.content, got.Value)
				require.Equal(t, !stranger.locked, got.Permanent)
				_, err = s.Create(t.Context(), name, signed("v", time.Minute))
				require.ErrorIs(t, err, kv.ErrHeld)
				require.Equal(t, before, pair(t, client, name))
			})
		}
	})
}

// The key was vacant when the create looked, and is a foreign one when its
// transaction arrives. Consul's verb lock alone would overwrite it.
func TestAForeignKeyThatComesBetweenIsNotOverwritten(t *testing.T) {
	inEachForm(t, func(t *testing.T, opts *consulkv.Options) {
		s, client, requests := openAs(t, opts)
		for _, released := range []bool{false, true} {
			name := newName()
			if released {
				require.NoError(t, s.Delete(t.Context(), name, create(t, s, name, signed("v", time.Minute))))
			}
			requests.beforeTxn(func(*http.Request) {
				_, err := client.KV().Put(&api.KVPair{Key: name, Value: []byte("a setting")}, nil)
				require.NoError(t, err)
			})
			requests.take()
			_, err := s.Create(t.Context(), name, signed("v", time.Minute))
			sent := requests.take()
			require.ErrorIs(t, err, kv.ErrHeld)
			got := pair(t, client, name)
			require.Equal(t, "a setting", string(got.Value))
			require.Empty(t, got.Session)
			require.Equal(t, 1, sent["session/destroy/"], "the session that was ready, or was made: %v", sent)
			if !released {
				require.Zero(t, sessions(t, client, name))
			}
		}
	})
}

// ownersWrites returns what an owner may do to its record.
func ownersWrites(t *testing.T, s kv.Store) map[string]func(name string, rec kv.Record) error {
	t.Helper()
	return map[string]func(name string, rec kv.Record) error{
		"publish": func(name string, rec kv.Record) error {
			next := rec
			next.Value = "published"
			_, err := s.Swap(t.Context(), name, rec, next)
			return err
		},
		"take over": func(name string, rec kv.Record) error {
			_, err := s.Swap(t.Context(), name, rec, signed("taken over", time.Minute))
			return err
		},
		"delete": func(name string, rec kv.Record) error { return s.Delete(t.Context(), name, rec) },
	}
}

// Nor is one that comes between the reading and the writing of an owner.
func TestAnOwnerDoesNotOverwriteAForeignKeyThatComesBetween(t *testing.T) {
	inEachForm(t, func(t *testing.T, opts *consulkv.Options) {
		s, client, requests := openAs(t, opts)
		for what, write := range ownersWrites(t, s) {
			name := newName()
			rec := create(t, s, name, signed("v", time.Minute))
			requests.beforeTxn(func(*http.Request) {
				_, err := client.KV().Put(&api.KVPair{Key: name, Value: []byte("a setting")}, nil)
				require.NoError(t, err)
			})
			err := write(name, rec)
			require.ErrorIs(t, err, kv.ErrStale, what)
			require.Equal(t, "a setting", string(pair(t, client, name).Value), what)
			require.LessOrEqual(t, sessions(t, client, name), 2, what)
		}
	})
}
