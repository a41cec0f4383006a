package etcdkv_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	etcdkv "github.com/electkv/election/backends/etcd"
	"github.com/electkv/election/internal/testenv"
)

const secret = "pa55word-of-the-candidate"

// guarded returns the address of a server on which a user "candidate" may use
// the tests' prefix and nothing else, and a client that may do anything.
func guarded(t testing.TB) (addr string, root *clientv3.Client) {
	t.Helper()
	addr = testenv.StartEtcd(t).Addr()
	open, ctx := dial(t, nil, addr), within(t, patience)
	do := func(_ any, err error) {
		t.Helper()
		require.NoError(t, err)
	}
	do(open.UserAdd(ctx, "root", "root's own"))
	do(open.UserGrantRole(ctx, "root", "root"))
	do(open.UserAdd(ctx, "candidate", secret))
	do(open.RoleAdd(ctx, "elections"))
	do(open.RoleGrantPermission(ctx, "elections", prefix, clientv3.GetPrefixRangeEnd(prefix), clientv3.PermissionType(clientv3.PermReadWrite)))
	do(open.UserGrantRole(ctx, "candidate", "elections"))
	do(open.AuthEnable(ctx))
	return addr, dialWith(t, nil, clientv3.Config{Endpoints: []string{addr}, Username: "root", Password: "root's own"})
}

func candidate(t testing.TB, addr string) *clientv3.Client {
	t.Helper()
	return dialWith(t, nil, clientv3.Config{Endpoints: []string{addr}, Username: "candidate", Password: secret})
}

// Where users may use nothing but the prefix, companions are below it too.
func TestAUserNeedsNoMoreThanItsPrefix(t *testing.T) {
	addr, _ := guarded(t)
	each(t, everyLayout(), func(t *testing.T, options layout) {
		options.Prefix = prefix
		store := options.with(candidate(t, addr))
		name, rec := held(t, store)
		w := watching(t, store, name)
		w.sees(rec)
		_, err := store.Refresh(within(t, patience), name, rec)
		require.NoError(t, err)
		rec = publish(t, store, name, rec, "published")
		w.sees(rec)
		if options.queue {
			place := joined(t, store, name, signed("waits"))
			require.False(t, stays(t, store, name, place))
			require.NoError(t, store.Delete(within(t, patience), name, place))
		}
		next, err := store.Swap(within(t, patience), name, rec, signed("next"))
		require.NoError(t, err)
		w.sees(next)
		require.NoError(t, store.Delete(within(t, patience), name, next))
		require.True(t, w.next().vacant())
	})
}

func TestAUserWithoutPermissionIsToldSo(t *testing.T) {
	addr, root := guarded(t)
	name, rec := held(t, etcdkv.New(root, &etcdkv.Options{Prefix: "forbidden/"}))
	store := etcdkv.New(candidate(t, addr), &etcdkv.Options{Prefix: "forbidden/"})
	for op, err := range calls(store, name, rec, patience) {
		requireOpen(t, op, err)
		require.ErrorIs(t, err, rpctypes.ErrPermissionDenied, op)
		require.NotContains(t, err.Error(), secret, op)
	}
}

// A permission that is taken away is no loss of the record, and proves nothing
// about it.
func TestAPermissionTakenAwayLeavesTheOutcomeOpen(t *testing.T) {
	addr, root := guarded(t)
	store := etcdkv.New(candidate(t, addr), &etcdkv.Options{Prefix: prefix})
	name, rec := held(t, store)
	_, err := root.UserRevokeRole(within(t, patience), "candidate", "elections")
	require.NoError(t, err)
	for op, err := range calls(store, name, rec, patience) {
		requireOpen(t, op, err)
		require.ErrorIs(t, err, rpctypes.ErrPermissionDenied, op)
	}
	_, err = root.UserGrantRole(within(t, patience), "candidate", "elections")
	require.NoError(t, err)
	_, err = store.Refresh(within(t, patience), name, rec)
	require.NoError(t, err)
}

func TestAUserThatIsGoneIsToldSo(t *testing.T) {
	addr, root := guarded(t)
	store := etcdkv.New(candidate(t, addr), &etcdkv.Options{Prefix: prefix})
	name, rec := held(t, store)
	_, err := root.UserDelete(within(t, patience), "candidate")
	require.NoError(t, err)
	for op, err := range calls(store, name, rec, 5*time.Second) {
		requireOpen(t, op, err)
		require.NotContains(t, err.Error(), secret, op)
	}
}

func TestErrorsOfAnUnreachableServerDoNotTellPasswords(t *testing.T) {
	t.Parallel() // it mostly waits
	client := dialWith(t, nil, clientv3.Config{Endpoints: []string{"http://candidate:" + secret + "@127.0.0.1:1"}})
	rec := signed("v")
	rec.Token, rec.Lease = 1, "1"
	for op, err := range calls(etcdkv.New(client, nil), "safe", rec, 300*time.Millisecond) {
		requireOpen(t, op, err)
		require.NotContains(t, err.Error(), secret, op)
	}
}
