package etcdkv_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// A denier answers requests about leases as a new leader of etcd does that has not
// caught up with the grant: it knows no such lease. The server never sees them.
type denier struct {
	renewals atomic.Int32 // how many keep-alives are still to be denied
	looks    atomic.Int32 // and how many questions for a lease's keys
}

func (d *denier) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := streamer(ctx, desc, cc, method, opts...)
	if err == nil && strings.HasSuffix(method, "/LeaseKeepAlive") && d.renewals.Add(-1) >= 0 {
		return denied{s}, nil
	}
	return s, err
}

func (d *denier) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if resp, ok := reply.(*pb.LeaseTimeToLiveResponse); ok && d.looks.Add(-1) >= 0 {
		resp.TTL, resp.Header = -1, &pb.ResponseHeader{RaftTerm: 1 << 60}
		return nil
	}
	return invoke(ctx, method, req, reply, cc, opts...)
}

// denied is a stream of keep-alives whose answer is that there is no such lease: a
// TTL of zero.
type denied struct{ grpc.ClientStream }

func (denied) SendMsg(any) error { return nil }
func (denied) RecvMsg(any) error { return nil }

// deniedWith returns a store with a denier that does nothing yet.
func deniedWith(t testing.TB, options layout, unary ...grpc.UnaryClientInterceptor) (anyStore, *denier) {
	t.Helper()
	d := &denier{}
	client := dialWith(t, nil, clientv3.Config{
		Endpoints: []string{testenv.Etcd(t)},
		DialOptions: []grpc.DialOption{
			grpc.WithChainStreamInterceptor(d.stream),
			grpc.WithChainUnaryInterceptor(append(unary, d.unary)...),
		},
	})
	options.Prefix = prefix
	return options.with(client), d
}

// requireDoubt requires an error that leaves the outcome open and names the lease.
func requireDoubt(t testing.TB, op string, rec kv.Record, err error) {
	t.Helper()
	requireOpen(t, op, err)
	require.ErrorContains(t, err, "denies the lease "+rec.Lease, op)
}

func TestARecordIsNotLostBecauseItsLeaseIsDenied(t *testing.T) {
	each(t, everyLayout(), func(t *testing.T, options layout) {
		store, d := deniedWith(t, options)
		name, rec := held(t, store)
		for range 2 {
			d.renewals.Store(1)
			got, err := store.Refresh(within(t, patience), name, rec)
			requireDoubt(t, "refresh", rec, err)
			require.Zero(t, got)
			got, err = store.Refresh(within(t, patience), name, rec)
			require.NoError(t, err)
			require.Equal(t, rec, got)
			rec = publish(t, store, name, rec, "published")
		}
		require.NoError(t, store.Delete(within(t, patience), name, rec))
	})
}

func TestAPlaceIsNotLostBecauseItsLeaseIsDenied(t *testing.T) {
	each(t, queues(), func(t *testing.T, options layout) {
		store, d := deniedWith(t, options)
		name, rec := held(t, store)
		place := joined(t, store, name, signed("waits"))
		for _, of := range []kv.Record{rec, place} {
			d.renewals.Store(1)
			got, leads, err := store.(kv.Queue).Stay(within(t, patience), name, of)
			requireDoubt(t, "stay", of, err)
			require.False(t, leads)
			require.Zero(t, got)
		}
		d.renewals.Store(1)
		requireLost(t, store, name, place) // which is not first, however long it lives
		require.True(t, stays(t, store, name, rec))
		require.False(t, stays(t, store, name, place))
	})
}

// The key decides, whether the lease is denied by right or not.
func TestARecordThatIsGoneIsLostWhetherOrNotItsLeaseIsDenied(t *testing.T) {
	client := dial(t, nil, testenv.Etcd(t))
	each(t, everyLayout(), func(t *testing.T, options layout) {
		store, d := deniedWith(t, options)
		for what, harm := range map[string]func(name string, rec kv.Record){
			"deleted":     func(name string, _ kv.Record) { removeAll(t, client, options, name) },
			"overwritten": func(name string, _ kv.Record) { putOver(t, client, options, name, "somebody") },
			"overwritten with the same lease": func(name string, rec kv.Record) {
				put(t, client, places(t, client, options, name)[0], "somebody", clientv3.WithLease(leaseOf(t, rec)))
			},
			"put back without its lease": func(name string, _ kv.Record) {
				key := places(t, client, options, name)[0]
				resp, err := client.Get(within(t, patience), prefix+key)
				require.NoError(t, err)
				put(t, client, key, string(resp.Kvs[0].Value))
			},
			"taken over": func(name string, rec kv.Record) {
				_, err := store.Swap(within(t, patience), name, rec, signed("next"))
				require.NoError(t, err)
			},
			"revoked with its lease": func(_ string, rec kv.Record) {
				_, err := client.Revoke(within(t, patience), leaseOf(t, rec))
				require.NoError(t, err)
			},
		} {
			name, created := held(t, store)
			rec := publish(t, store, name, created, "published") // the text has the token now
			harm(name, rec)
			d.renewals.Store(1)
			got, err := store.Refresh(within(t, patience), name, rec)
			require.ErrorIs(t, err, kv.ErrStale, "%s: the refresh returned %+v", what, got)
			requireLost(t, store, name, rec)
		}
	})
}

func TestARefreshIsNotRefusedWhereTheKeyOfADeniedLeaseCannotBeRead(t *testing.T) {
	var s spoiler
	store, d := deniedWith(t, layout{}, s.intercept)
	name, rec := held(t, store)
	s.lose("/Range", 0, codes.Unknown)
	d.renewals.Store(1)
	_, err := store.Refresh(within(t, patience), name, rec)
	requireOpen(t, "refresh", err)
	require.ErrorContains(t, err, "spoiled")
}

func TestAnHeirIsNotPassedByBecauseItsLeaseIsDenied(t *testing.T) {
	each(t, everyLayout(), func(t *testing.T, options layout) {
		store, d := deniedWith(t, options)
		lead, leader := held(t, store)
		second, heir := held(t, store)
		deny := map[string]*atomic.Int32{"the keep-alive": &d.renewals, "the question for keys": &d.looks}
		for what, left := range deny {
			left.Store(1)
			got, err := store.Swap(within(t, patience), lead, leader, heir)
			requireDoubt(t, what, heir, err)
			require.Zero(t, got)
			now, err := store.Get(within(t, patience), lead)
			require.NoError(t, err)
			require.Equal(t, leader, now)
		}
		_, err := store.Swap(within(t, patience), lead, leader, heir)
		require.NoError(t, err)
		require.NoError(t, store.Delete(within(t, patience), second, heir))
	})
}

// The safe changes after the first look of the hand-over.
func TestAHandOverFromARecordThatIsGoneIsRefusedThoughTheHeirsLeaseIsDenied(t *testing.T) {
	other := open(t, nil, testenv.Etcd(t))
	var change func()
	store, d := deniedWith(t, layout{}, func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		err := invoke(ctx, method, req, reply, cc, opts...)
		if f := change; f != nil && strings.HasSuffix(method, "/Range") {
			change = nil
			f()
		}
		return err
	})
	_, heir := held(t, store)
	for what, left := range map[string]*atomic.Int32{"the keep-alive": &d.renewals, "the question for keys": &d.looks} {
		name, rec := held(t, store)
		change = func() {
			_, err := other.Swap(within(t, patience), name, rec, signed("taken over"))
			require.NoError(t, err)
		}
		left.Store(1)
		_, err := store.Swap(within(t, patience), name, rec, heir)
		require.ErrorIs(t, err, kv.ErrStale, what)
		require.LessOrEqual(t, left.Load(), int32(0), what)
	}
}
