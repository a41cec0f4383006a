package etcdkv_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// session begins what an old client begins with: a lease that is kept alive.
func session(t testing.TB, client *clientv3.Client) *concurrency.Session {
	t.Helper()
	s, err := concurrency.NewSession(client, concurrency.WithTTL(600))
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() }) // the test may have revoked it
	return s
}

// mutex returns an old lock on the safe.
func mutex(t testing.TB, client *clientv3.Client, name string) *concurrency.Mutex {
	t.Helper()
	return concurrency.NewMutex(session(t, client), prefix+name)
}

// As in the examples of package concurrency.
func TestALockWhoseOwnNameEndsWithASlashIsReachedByASuffix(t *testing.T) {
	client := dial(t, nil, testenv.Etcd(t))
	for _, options := range queues() {
		options.Suffix = "/"
		store := openWith(t, nil, options, testenv.Etcd(t))
		name := signed("").Signature
		old := mutex(t, client, name+"/")
		require.NoError(t, old.Lock(within(t, patience)), title(options))
		_, err := store.Create(within(t, patience), name, signed("v"))
		require.ErrorIs(t, err, kv.ErrHeld)
		place, err := store.(kv.Queue).Join(within(t, patience), name, signed("v"))
		require.NoError(t, err)
		require.ErrorIs(t, mutex(t, client, name+"/").TryLock(within(t, patience)), concurrency.ErrLocked)
		require.NoError(t, old.Unlock(within(t, patience)))
		now, err := store.Get(within(t, patience), name)
		require.NoError(t, err)
		require.Equal(t, place, now)
		require.NoError(t, store.Delete(within(t, patience), name, place))
	}
}

// locking locks in a goroutine, as an old client does that waits, and returns
// when it stands in line.
func locking(t testing.TB, client *clientv3.Client, options layout, name string, m *concurrency.Mutex) <-chan error {
	t.Helper()
	before := len(places(t, client, options, name))
	locked, ctx := make(chan error, 1), within(t, patience)
	go func() { locked <- m.Lock(ctx) }()
	awaitPlaces(t, client, options, name, before+1)
	return locked
}

// awaitPlaces waits until so many are in line, and returns their keys.
func awaitPlaces(t testing.TB, client *clientv3.Client, options layout, name string, n int) []string {
	t.Helper()
	ctx, cancel := context.WithCancel(within(t, patience))
	defer cancel()
	changes := client.Watch(ctx, prefix+name+"/", clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	for range changes {
		if keys := places(t, client, options, name); len(keys) == n {
			return keys
		}
	}
	require.FailNow(t, "too many or too few in line", "want %d, have %v", n, places(t, client, options, name))
	return nil
}

// each runs a test with each layout, or in short mode with the first and the last: the two
// have all that the others have between them.
func each(t *testing.T, layouts []layout, test func(t *testing.T, options layout)) {
	for i, options := range layouts {
		if testing.Short() && i > 0 && i < len(layouts)-1 {
			continue
		}
		t.Run(title(options), func(t *testing.T) { test(t, options) })
	}
}

func TestAnOldLockAndOneOfOursExcludeEachOther(t *testing.T) {
	each(t, lines(), func(t *testing.T, options layout) {
		client, store := dial(t, nil, testenv.Etcd(t)), openWith(t, nil, options, testenv.Etcd(t))
		name, rec := held(t, store)
		old := mutex(t, client, name)
		require.ErrorIs(t, old.TryLock(within(t, patience)), concurrency.ErrLocked)
		got, err := store.Refresh(within(t, patience), name, rec)
		require.NoError(t, err)
		require.Equal(t, rec, got)
		require.NoError(t, store.Delete(within(t, patience), name, rec))

		require.NoError(t, old.TryLock(within(t, patience)))
		_, err = store.Create(within(t, patience), name, signed("v"))
		require.ErrorIs(t, err, kv.ErrHeld)
		require.Equal(t, []string{old.Key()[len(prefix):]}, places(t, client, options, name), "nothing else may lie there")
		require.NoError(t, old.Unlock(within(t, patience)))

		next, err := store.Create(within(t, patience), name, signed("v"))
		require.NoError(t, err)
		require.Greater(t, next.Token, rec.Token)
	})
}

// Candidates of both kinds come at once, many times over.
func TestOneOfOldAndNewWinsARush(t *testing.T) {
	each(t, lines(), func(t *testing.T, options layout) {
		client, store := dial(t, nil, testenv.Etcd(t)), openWith(t, nil, options, testenv.Etcd(t))
		for range 10 {
			name := signed("").Signature
			old, won := mutex(t, client, name), make(chan error)
			go func() { won <- old.TryLock(within(t, patience)) }()
			_, err := store.Create(within(t, patience), name, signed("v"))
			theirs := <-won
			require.False(t, err == nil && theirs == nil, "both have the lock")
			if err != nil {
				require.ErrorIs(t, err, kv.ErrHeld)
			}
		}
	})
}

// Tokens of both kinds are in one order, and old clients know ours as their
// fence.
func TestAnOldLeaderIsReportedWithWhatItPublishesAndItsFence(t *testing.T) {
	each(t, lines(), func(t *testing.T, options layout) {
		client, store := dial(t, nil, testenv.Etcd(t)), openWith(t, nil, options, testenv.Etcd(t))
		name := signed("").Signature
		s := session(t, client)
		old := concurrency.NewElection(s, prefix+name)
		require.NoError(t, old.Campaign(within(t, patience), "host-7"))
		want := kv.Record{
			Value: "host-7", Token: uint64(old.Rev()), Revision: uint64(old.Rev()),
			Lease: fmt.Sprintf("%x", s.Lease()), Foreign: true,
		}
		got, err := store.Get(within(t, patience), name)
		require.NoError(t, err)
		require.Equal(t, want, got)
		w := watching(t, store, name)
		require.Equal(t, want, w.next().rec)

		require.NoError(t, old.Proclaim(within(t, patience), "host-8"))
		o := w.next()
		require.Equal(t, "host-8", o.rec.Value)
		require.Equal(t, want.Token, o.rec.Token, "a new value is no new term")
		require.NoError(t, old.Resign(within(t, patience)))
		require.True(t, w.next().vacant())
		rec, err := store.Create(within(t, patience), name, signed("ours"))
		require.NoError(t, err)
		require.Greater(t, rec.Token, want.Token)
		resp, err := old.Leader(within(t, patience))
		require.NoError(t, err)
		require.EqualValues(t, rec.Token, resp.Kvs[0].CreateRevision, "an old client's fence")
	})
}

func TestOldObserversReadEachValueThatStandsAlone(t *testing.T) {
	each(t, lines(), func(t *testing.T, options layout) {
		if !options.Plain {
			return
		}
		client, store := dial(t, nil, testenv.Etcd(t)), openWith(t, nil, options, testenv.Etcd(t))
		name, rec := held(t, store)
		old := concurrency.NewElection(session(t, client), prefix+name)
		ctx, cancel := context.WithCancel(within(t, patience))
		seen := old.Observe(ctx)
		sees := func(value string) {
			t.Helper()
			resp, open := <-seen
			require.True(t, open, "the old client has given up")
			require.Equal(t, value, string(resp.Kvs[0].Value))
		}
		sees("held")
		for _, value := range []string{"host-7", "", "\x00\xff", `{"election":1}`} {
			rec = publish(t, store, name, rec, value)
			sees(value)
			resp, err := old.Leader(within(t, patience))
			require.NoError(t, err)
			require.Equal(t, value, string(resp.Kvs[0].Value))
		}
		_, err := store.Swap(within(t, patience), name, rec, signed("host-9"))
		require.NoError(t, err)
		sees("host-9")
		cancel()
		for range seen { // until the old client's goroutine has ended
		}
	})
}

func TestAnOldLockThatWaitsProceedsWhenWeGo(t *testing.T) {
	each(t, lines(), func(t *testing.T, options layout) {
		client, store := dial(t, nil, testenv.Etcd(t)), openWith(t, nil, options, testenv.Etcd(t))
		for how, leave := range map[string]func(name string, rec kv.Record){
			"deleted": func(name string, rec kv.Record) {
				require.NoError(t, store.Delete(within(t, patience), name, rec))
			},
			"revoked": func(_ string, rec kv.Record) {
				_, err := client.Revoke(within(t, patience), leaseOf(t, rec))
				require.NoError(t, err)
			},
		} {
			name, rec := held(t, store)
			old := mutex(t, client, name)
			locked := locking(t, client, options, name, old)
			rec = publish(t, store, name, rec, "published")
			_, err := store.Refresh(within(t, patience), name, rec)
			require.NoError(t, err)
			require.Empty(t, locked, "a new value has let the next one in")
			leave(name, rec)
			require.NoError(t, <-locked, how)
			requireLost(t, store, name, rec)
			got, err := store.Get(within(t, patience), name)
			require.NoError(t, err)
			require.True(t, got.Foreign)
			require.Greater(t, got.Token, rec.Token)
			require.NoError(t, old.Unlock(within(t, patience)))
		}
	})
}

// An old Election client looks at its key only when it writes, so it may believe
// for long that it leads. An old Mutex deletes its key without looking. Neither
// harms whoever has the safe now.
func TestAnOldClientWhoseKeyIsGoneDoesNoHarm(t *testing.T) {
	each(t, lines(), func(t *testing.T, options layout) {
		client, store := dial(t, nil, testenv.Etcd(t)), openWith(t, nil, options, testenv.Etcd(t))
		name := signed("").Signature
		s := session(t, client)
		leader := concurrency.NewElection(s, prefix+name)
		require.NoError(t, leader.Campaign(within(t, patience), "host-7"))
		fence := leader.Rev()
		remove(t, client, leader.Key()[len(prefix):])
		rec, err := store.Create(within(t, patience), name, signed("ours"))
		require.NoError(t, err)
		require.NotEmpty(t, leader.Key(), "the old client believes that it leads")
		require.Greater(t, rec.Token, uint64(fence), "a resource can tell")
		require.ErrorIs(t, leader.Proclaim(within(t, patience), "host-7 again"), concurrency.ErrElectionNotLeader)

		lock := concurrency.NewMutex(session(t, client), prefix+name)
		require.ErrorIs(t, lock.TryLock(within(t, patience)), concurrency.ErrLocked)
		require.ErrorIs(t, lock.Unlock(within(t, patience)), concurrency.ErrLockReleased)
		got, err := store.Refresh(within(t, patience), name, rec)
		require.NoError(t, err)
		require.Equal(t, rec, got)
	})
}

// A Mutex that was locked is unlocked after another has the safe.
func TestAnOldLockThatIsUnlockedTooLateDoesNoHarm(t *testing.T) {
	each(t, lines(), func(t *testing.T, options layout) {
		client, store := dial(t, nil, testenv.Etcd(t)), openWith(t, nil, options, testenv.Etcd(t))
		name := signed("").Signature
		s := session(t, client)
		old := concurrency.NewMutex(s, prefix+name)
		require.NoError(t, old.Lock(within(t, patience)))
		_, err := client.Revoke(within(t, patience), s.Lease())
		require.NoError(t, err)
		rec, err := store.Create(within(t, patience), name, signed("ours"))
		require.NoError(t, err)
		require.NoError(t, old.Unlock(within(t, patience)))
		got, err := store.Refresh(within(t, patience), name, rec)
		require.NoError(t, err)
		require.Equal(t, rec, got)
	})
}

// Those who do not stand in line get the safe when the line has emptied, and are
// told of that.
func TestAClaimWaitsForTheLineToEmpty(t *testing.T) {
	each(t, everyLayout()[4:], func(t *testing.T, options layout) {
		client, store := dial(t, nil, testenv.Etcd(t)), openWith(t, nil, options, testenv.Etcd(t))
		name := signed("").Signature
		first, second := mutex(t, client, name), mutex(t, client, name)
		require.NoError(t, first.Lock(within(t, patience)))
		locked := locking(t, client, options, name, second)
		w := watching(t, store, name)
		require.True(t, w.next().rec.Foreign)
		refused := func() {
			t.Helper()
			_, err := store.Create(within(t, patience), name, signed("v"))
			require.ErrorIs(t, err, kv.ErrHeld)
		}
		refused()
		require.NoError(t, first.Unlock(within(t, patience)))
		require.NoError(t, <-locked)
		require.True(t, w.next().rec.Foreign, "the second has it")
		refused()
		require.NoError(t, second.Unlock(within(t, patience)))
		require.True(t, w.next().vacant())
		rec, err := store.Create(within(t, patience), name, signed("v"))
		require.NoError(t, err)
		w.sees(rec)
	})
}
