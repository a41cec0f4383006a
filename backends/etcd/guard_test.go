package etcdkv_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/electkv/election"
	etcdkv "github.com/electkv/election/backends/etcd"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// A guard has conditions for a term's own Txns.
type guard interface {
	Guard(name string, rec kv.Record) []clientv3.Cmp
}

// writes reports whether the store lets rec's owner write.
func writes(t testing.TB, client *clientv3.Client, store guard, name string, rec kv.Record) bool {
	t.Helper()
	return writesIf(t, client, store.Guard(name, rec))
}

// writesIf reports whether the store writes under the conditions.
func writesIf(t testing.TB, client *clientv3.Client, conditions []clientv3.Cmp) bool {
	t.Helper()
	resp, err := client.Txn(within(t, patience)).
		If(conditions...).
		Then(clientv3.OpPut(prefix+"guarded", "written")).
		Commit()
	require.NoError(t, err)
	return resp.Succeeded
}

// elected campaigns until it leads. The term's lease is given back in the end.
func elected(t testing.TB, store kv.Store, name string, opts *election.Options) *election.Term {
	t.Helper()
	c, err := election.New(store, name, opts)
	require.NoError(t, err)
	term, err := c.Campaign(within(t, 2*patience))
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = term.Resign(ctx) // it may have been lost
	})
	return term
}

// The leader hears nothing and does nothing, until another leads. Then it goes on
// with what it was about to write.
func TestALeaderThatSleptBeyondItsTermIsRefused(t *testing.T) {
	each(t, everyLayout(), func(t *testing.T, options layout) {
		t.Parallel() // mostly it waits
		inTime(t, func(ttl time.Duration) bool {
			server := testenv.Etcd(t)
			proxy := testenv.NewProxy(t, server)
			client, store := dial(t, nil, server), openWith(t, nil, options, server)
			name := signed("").Signature
			old := elected(t, openWith(t, nil, options, proxy.Addr()), name, &election.Options{TTL: ttl})
			late := old.Record()
			written := writes(t, client, store, name, late)
			if old.Err() != nil {
				return false
			}
			require.True(t, written)
			proxy.BlackHole()
			term := elected(t, store, name, &election.Options{TTL: time.Minute})
			require.Greater(t, term.Token(), old.Token())
			require.False(t, writes(t, client, store, name, late), "the old leader has written")
			require.True(t, writesIf(t, client, store.Guard(term.NamedRecord())))
			require.Error(t, old.Err())
			proxy.Heal()
			return true
		})
	})
}

// One candidate leads in two elections. A guard is for the one whose term is given.
func TestAGuardIsForTheTermsOwnElection(t *testing.T) {
	each(t, everyLayout(), func(t *testing.T, options layout) {
		client, store := dial(t, nil, testenv.Etcd(t)), openWith(t, nil, options, testenv.Etcd(t))
		one, two := elected(t, store, signed("").Signature, nil), elected(t, store, signed("").Signature, nil)
		name, rec := one.NamedRecord()
		another, _ := two.NamedRecord()
		require.False(t, writesIf(t, client, store.Guard(another, rec)))
		require.NoError(t, two.Resign(within(t, patience)))
		require.True(t, writesIf(t, client, store.Guard(one.NamedRecord())))
		require.True(t, writesIf(t, client, store.Guard(name, rec)))
		require.False(t, writesIf(t, client, store.Guard(two.NamedRecord())))
	})
}

func TestAGuardHoldsWhateverIsProclaimedMeanwhile(t *testing.T) {
	each(t, everyLayout(), func(t *testing.T, options layout) {
		client, store := dial(t, nil, testenv.Etcd(t)), openWith(t, nil, options, testenv.Etcd(t))
		name := signed("").Signature
		term := elected(t, store, name, nil)
		before := term.Record()
		for _, value := range []string{"one", "two"} {
			require.NoError(t, term.Proclaim(within(t, patience), value))
			require.True(t, writes(t, client, store, name, before))
			require.True(t, writes(t, client, store, name, term.Record()))
		}
		require.NoError(t, term.Resign(within(t, patience)))
		require.False(t, writes(t, client, store, name, before))
	})
}

func TestAGuardEndsWithAHandOver(t *testing.T) {
	each(t, everyLayout(), func(t *testing.T, options layout) {
		client, store := dial(t, nil, testenv.Etcd(t)), openWith(t, nil, options, testenv.Etcd(t))
		for what, next := range map[string]func() kv.Record{
			"taken over":  func() kv.Record { return signed("next") },
			"handed over": func() kv.Record { _, heir := held(t, store); return heir },
		} {
			name, rec := held(t, store)
			require.True(t, writes(t, client, store, name, rec))
			now, err := store.Swap(within(t, patience), name, rec, next())
			require.NoError(t, err)
			require.False(t, writes(t, client, store, name, rec), what)
			require.True(t, writes(t, client, store, name, now), what)
		}
	})
}

// Whoever has led by it would go on passing its guard.
func TestASafeIsNotSignedAnewOnTheSameLease(t *testing.T) {
	each(t, everyLayout(), func(t *testing.T, options layout) {
		client, store := dial(t, nil, testenv.Etcd(t)), openWith(t, nil, options, testenv.Etcd(t))
		name, rec := held(t, store)
		rival := signed("rival")
		rival.Lease = rec.Lease
		_, err := store.Swap(within(t, patience), name, rec, rival)
		require.ErrorIs(t, err, kv.ErrInvalid)
		require.ErrorContains(t, err, "want another lease")
		require.True(t, writes(t, client, store, name, rec))
		got, err := store.Refresh(within(t, patience), name, rec)
		require.NoError(t, err)
		require.Equal(t, rec, got)
	})
}

func TestAGuardStaysEndedWhenItsLeaseHasTheSafeBack(t *testing.T) {
	each(t, everyLayout(), func(t *testing.T, options layout) {
		client, store := dial(t, nil, testenv.Etcd(t)), openWith(t, nil, options, testenv.Etcd(t))
		name, rec := held(t, store)
		second, other := held(t, store)
		_, err := store.Swap(within(t, patience), second, other, rec) // rec's lease lives on
		require.NoError(t, err)
		now, err := store.Swap(within(t, patience), name, rec, signed("between"))
		require.NoError(t, err)
		require.False(t, writes(t, client, store, name, rec))
		again := signed("again")
		again.Lease = rec.Lease
		again, err = store.Swap(within(t, patience), name, now, again)
		require.NoError(t, err)
		require.False(t, writes(t, client, store, name, rec))
		require.True(t, writes(t, client, store, name, again))
	})
}

// The guard is about the term, whatever its signature and its value look like.
func TestAGuardIsForOneSignature(t *testing.T) {
	each(t, everyLayout(), func(t *testing.T, options layout) {
		addr := testenv.Etcd(t)
		client, store := dial(t, nil, addr), openWith(t, nil, options, addr)
		guardsOneSignature(t, client, store, store)
	})
}

func guardsOneSignature(t *testing.T, client *clientv3.Client, store kv.Store, guard guard) {
	for _, signature := range []string{"", `","ttl_ms":`, `"`, `\`, "<&>\u2028", "ключ", "{}-,", "a\x00b"} {
		rec := signed("v")
		name := rec.Signature
		rec.Signature += signature
		rec, err := store.Create(within(t, patience), name, rec)
		require.NoError(t, err)
		before := rec
		for _, value := range []string{"", "one", "\xff\x00", "two"} {
			require.True(t, writes(t, client, guard, name, before), signature)
			rec, err = store.Refresh(within(t, patience), name, rec)
			require.NoError(t, err)
			require.True(t, writes(t, client, guard, name, before), signature)
			rec = publish(t, store, name, rec, value)
			require.True(t, writes(t, client, guard, name, rec), signature)
		}
		longer := rec
		longer.Signature += "!"
		shorter := rec
		shorter.Signature = rec.Signature[:len(rec.Signature)-1]
		require.False(t, writes(t, client, guard, name, longer))
		require.False(t, writes(t, client, guard, name, shorter))
		next, err := store.Swap(within(t, patience), name, rec, signed("next"))
		require.NoError(t, err)
		require.False(t, writes(t, client, guard, name, rec), signature)
		require.True(t, writes(t, client, guard, name, next))
		require.NoError(t, store.Delete(within(t, patience), name, next))
		require.False(t, writes(t, client, guard, name, next))
	}
}

// A create that comes late brings the signature back, though others led since.
func TestAGuardEndsWithItsToken(t *testing.T) {
	each(t, everyLayout(), func(t *testing.T, options layout) {
		addr := testenv.Etcd(t)
		client, store := dial(t, nil, addr), openWith(t, nil, options, addr)
		guardsOneToken(t, client, store, store)
	})
}

func guardsOneToken(t *testing.T, client *clientv3.Client, store kv.Store, guard guard) {
	name, rec := held(t, store)
	require.NoError(t, store.Delete(within(t, patience), name, rec))
	again, err := store.Create(within(t, patience), name, rec)
	require.NoError(t, err)
	require.Greater(t, again.Token, rec.Token)
	require.False(t, writes(t, client, guard, name, rec))
	require.True(t, writes(t, client, guard, name, again))
}

func TestAGuardNeverHoldsForNothing(t *testing.T) {
	each(t, everyLayout(), func(t *testing.T, options layout) {
		client, store := dial(t, nil, testenv.Etcd(t)), openWith(t, nil, options, testenv.Etcd(t))
		name, rec := held(t, store)
		neverHolds(t, client, store, name, rec)
		require.False(t, writesIf(t, client, etcdkv.New(client, nil).Guard("", rec)), "no key at all")
		require.False(t, writesIf(t, client, etcdkv.New(client, nil).Guard("", kv.Record{})), "no key and no lease")
		if options.lined() || options.Plain {
			rec.Lease = "1"
			require.False(t, writes(t, client, store, name, rec), "another lease")
		}
		rec.Lease = "lease"
		require.False(t, writes(t, client, store, name, rec), "no lease's name")
		removeAll(t, client, options, name)
		require.False(t, writes(t, client, store, name, rec))
		putOver(t, client, options, name, "somebody")
		require.False(t, writes(t, client, store, name, rec))
	})
}

func neverHolds(t *testing.T, client *clientv3.Client, guard guard, name string, rec kv.Record) {
	for what, change := range map[string]func(*kv.Record){
		"nothing":           func(r *kv.Record) { *r = kv.Record{} },
		"no signature":      func(r *kv.Record) { r.Signature = "" },
		"no token":          func(r *kv.Record) { r.Token = 0 },
		"an earlier token":  func(r *kv.Record) { r.Token-- },
		"an endless token":  func(r *kv.Record) { r.Token = math.MaxUint64 },
		"another signature": func(r *kv.Record) { r.Signature = "other" },
		"foreign":           func(r *kv.Record) { r.Foreign = true },
	} {
		other := rec
		change(&other)
		require.False(t, writes(t, client, guard, name, other), what)
		require.False(t, writes(t, client, guard, name+"-vacant", other), what)
	}
	require.False(t, writes(t, client, guard, name+"-vacant", rec))
	require.False(t, writes(t, client, guard, "", rec), "no name")
	require.True(t, writes(t, client, guard, name, rec))
}

// Somebody puts the record's own text back, without its lease: nobody could be elected
// any more, and its owner leads no longer.
func TestAGuardEndsWhenTheTextIsPutBackWithoutALease(t *testing.T) {
	client, store := dial(t, nil, testenv.Etcd(t)), open(t, nil, testenv.Etcd(t))
	name, rec := held(t, store)
	require.True(t, writes(t, client, store, name, rec))
	put(t, client, name, kv.Encode(kv.Record{Signature: rec.Signature, TTL: rec.TTL}))
	require.False(t, writes(t, client, store, name, rec))
}

// A foreign holder is nobody's leader, and one that comes to the key ends the
// guard.
func TestAGuardEndsWhenARecordIsOverwritten(t *testing.T) {
	each(t, everyLayout(), func(t *testing.T, options layout) {
		client, store := dial(t, nil, testenv.Etcd(t)), openWith(t, nil, options, testenv.Etcd(t))
		name, rec := held(t, store)
		putOver(t, client, options, name, "somebody")
		require.False(t, writes(t, client, store, name, rec))
	})
}
