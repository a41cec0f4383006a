package etcdkv_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv/kvtest"
)

func TestALeaseThatManyRecordsHaveIsKeptAliveOnce(t *testing.T) {
	store, w := wiredTo(t, layout{}, testenv.Etcd(t))
	records := mayShare(heldMany(t, sharer{store}, 400))
	require.Len(t, leasesOf(records), 1)
	w.reset()
	var answers, early atomic.Int32
	w.answered = func(context.Context, int, *pb.LeaseKeepAliveResponse) (bool, error) {
		answers.Add(1)
		return true, nil
	}
	w.sent = func(*pb.TxnRequest) error {
		if answers.Load() == 0 {
			early.Add(1)
		}
		return nil
	}
	requireRefreshed(t, records, kvtest.RefreshAll(t, within(t, patience), store, records))
	require.Equal(t, 1, w.renewals)
	require.Len(t, w.txns, 4)
	require.Zero(t, early.Load(), "Txns before the lease was known to live")
}

// Where it is denied, each record is refreshed singly, which decides. Where the answer is lost,
// nothing is known of any.
func TestWhatBecomesOfACommonKeepAliveIsToldOfEachRecordThatHasTheLease(t *testing.T) {
	store, w := wiredTo(t, layout{}, testenv.Etcd(t))
	records := mayShare(heldMany(t, sharer{store}, 200))
	w.answered = func(_ context.Context, _ int, resp *pb.LeaseKeepAliveResponse) (bool, error) {
		w.answered, resp.TTL = nil, 0
		return true, nil
	}
	requireRefreshed(t, records, kvtest.RefreshAll(t, within(t, patience), store, records))

	lost := errors.New("the answer is lost")
	w.answered = func(context.Context, int, *pb.LeaseKeepAliveResponse) (bool, error) { return false, lost }
	w.reset()
	for _, told := range kvtest.RefreshAll(t, within(t, patience), store, records) {
		require.ErrorIs(t, told.Err, lost)
	}
	require.Empty(t, w.txns)
}

func TestABatchThatCanKeepNoLeaseAliveTellsSoOfEachRecord(t *testing.T) {
	store, w := wiredTo(t, layout{}, testenv.Etcd(t))
	records := append(mayShare(heldMany(t, sharer{store}, 200)), heldMany(t, store, 200)...)
	lost := status.Error(codes.Unavailable, "there is no connection")
	w.opening = func() error { return lost }
	for _, told := range kvtest.RefreshAll(t, within(t, patience), store, records) {
		require.ErrorContains(t, told.Err, "there is no connection")
	}
	w.opening = nil
	requireRefreshed(t, records, kvtest.RefreshAll(t, within(t, patience), store, records))
}
