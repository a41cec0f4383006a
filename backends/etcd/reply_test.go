package etcdkv_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// A spoiler puts a status of its own in the place of the next reply to a method,
// as a proxy or a broken connection does. The server has carried the request
// out.
type spoiler struct {
	method string
	code   codes.Code
	spare  atomic.Int32 // how many replies it leaves alone before
	left   atomic.Int32 // how many replies it still spoils
	calls  atomic.Int32 // how often the method was called
}

// lose spoils the reply to a method that comes after so many others.
func (s *spoiler) lose(method string, after int32, code codes.Code) {
	s.method, s.code = method, code
	s.spare.Store(after)
	s.left.Store(1)
}

func (s *spoiler) intercept(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	err := invoke(ctx, method, req, reply, cc, opts...)
	if !strings.HasSuffix(method, s.method) {
		return err
	}
	s.calls.Add(1)
	if err == nil && s.spare.Add(-1) < 0 && s.left.Add(-1) >= 0 {
		return status.Error(s.code, "spoiled")
	}
	return err
}

// spoiled returns a store whose next reply to the method is spoiled.
func spoiled(t testing.TB, method string, code codes.Code) (anyStore, *spoiler) {
	t.Helper()
	store, s := spoiledWith(t, layout{})
	s.lose(method, 0, code)
	return store, s
}

// spoiledWith returns a store with a spoiler that does nothing yet.
func spoiledWith(t testing.TB, options layout) (anyStore, *spoiler) {
	t.Helper()
	s := &spoiler{method: "none"}
	client := dialWith(t, nil, clientv3.Config{
		Endpoints:   []string{testenv.Etcd(t)},
		DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(s.intercept)},
	})
	options.Prefix = prefix
	return options.with(client), s
}

// The record is there and has its lease, for the caller to find.
func TestACreateWhoseReplyIsLostLeavesTheOutcomeOpen(t *testing.T) {
	store, s := spoiled(t, "/Txn", codes.Unavailable)
	rec := signed("v")
	name := rec.Signature
	_, err := store.Create(within(t, patience), name, rec)
	requireOpen(t, "create", err)
	require.EqualValues(t, 1, s.calls.Load(), "the client sent the write again")
	got, err := store.Get(within(t, patience), name)
	require.NoError(t, err)
	require.Equal(t, rec.Signature, got.Signature)
	_, err = store.Refresh(within(t, patience), name, got)
	require.NoError(t, err)
	require.NoError(t, store.Delete(within(t, patience), name, got))
}

func TestASwapWhoseReplyIsLostLeavesTheOutcomeOpen(t *testing.T) {
	for what, next := range map[string]kv.Record{"publish": {}, "take over": signed("next")} {
		store, s := spoiled(t, "/Txn", codes.Unavailable)
		s.left.Store(0)
		name, rec := held(t, store)
		if next.Signature == "" {
			next.Signature = rec.Signature
		}
		s.calls.Store(0)
		s.left.Store(1)
		_, err := store.Swap(within(t, patience), name, rec, next)
		requireOpen(t, what, err)
		require.EqualValues(t, 1, s.calls.Load(), "the client sent the write again")
		got, err := store.Get(within(t, patience), name)
		require.NoError(t, err)
		require.Equal(t, next.Signature, got.Signature)
		_, err = store.Refresh(within(t, patience), name, got)
		require.NoError(t, err)
	}
}

// The client takes such an answer for a failure to send, and sends the Txn
// again. The second one finds the first one's record.
func TestAWriteThatTheClientSendsTwiceIsCarriedOutOnce(t *testing.T) {
	for _, code := range []codes.Code{codes.Canceled, codes.DeadlineExceeded} {
		store, s := spoiled(t, "/Txn", code)
		rec := signed("v")
		name := rec.Signature
		created, err := store.Create(within(t, patience), name, rec)
		require.NoError(t, err)
		require.EqualValues(t, 2, s.calls.Load())
		got, err := store.Get(within(t, patience), name)
		require.NoError(t, err)
		require.Equal(t, got, created)

		s.left.Store(1)
		taken, err := store.Swap(within(t, patience), name, created, signed("taken over"))
		require.NoError(t, err)
		require.EqualValues(t, 4, s.calls.Load())
		got, err = store.Refresh(within(t, patience), name, taken)
		require.NoError(t, err)
		require.Equal(t, got, taken)

		// Here it cannot tell its own write from another's, and says the
		// safe thing.
		s.left.Store(1)
		_, err = store.Swap(within(t, patience), name, taken, kv.Record{Signature: taken.Signature, Value: "published"})
		require.ErrorIs(t, err, kv.ErrStale)
		got, err = store.Refresh(within(t, patience), name, taken)
		require.NoError(t, err, "the record is the owner's still")
		require.Equal(t, "published", got.Value)
		require.Equal(t, taken.Token, got.Token)
	}
}

// The client asks for a lease again, so one is left over until its TTL ends.
func TestALeaseWhoseReplyIsLostFades(t *testing.T) {
	store, s := spoiled(t, "/LeaseGrant", codes.Unavailable)
	rec := signed("v")
	rec.TTL = time.Minute
	name := rec.Signature
	created, err := store.Create(within(t, patience), name, rec)
	require.NoError(t, err)
	require.EqualValues(t, 2, s.calls.Load())
	_, err = store.Refresh(within(t, patience), name, created)
	require.NoError(t, err)
	require.NoError(t, store.Delete(within(t, patience), name, created))
}
