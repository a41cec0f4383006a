package etcdkv_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	etcdkv "github.com/electkv/election/backends/etcd"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvtest"
)

// A wire sees the keep-alives and the Txns of a client, and their answers.
type wire struct {
	mu       sync.Mutex
	streams  int
	renewals int              // messages on all streams
	txns     []*pb.TxnRequest // in the order in which they were sent

	// answered is called for each answer of a stream, and may change it. The answer is
	// lost if it returns false, and the stream fails with the error that it returns.
	answered func(ctx context.Context, stream int, resp *pb.LeaseKeepAliveResponse) (bool, error)
	// opening is called before each stream of keep-alives, which fails if it returns an error.
	opening func() error
	// sent is called for each Txn before it is sent, and the Txn fails if it returns an error.
	sent func(req *pb.TxnRequest) error
	// granting is called before each LeaseGrant, which fails if it returns an error.
	granting func(ctx context.Context) error
	// answer is called for each Txn in the place of sending it, and sends it when it likes.
	answer func(req *pb.TxnRequest, send func() error) error
}

// wiredTo returns a store whose client has a wire that changes nothing yet.
func wiredTo(t testing.TB, options layout, addr string) (anyStore, *wire) {
	t.Helper()
	w := &wire{}
	client := dialWith(t, nil, clientv3.Config{
		Endpoints: []string{addr},
		DialOptions: []grpc.DialOption{
			grpc.WithChainStreamInterceptor(w.stream),
			grpc.WithChainUnaryInterceptor(w.unary),
		},
	})
	options.Prefix = prefix
	return options.with(client), w
}

// reset forgets what was seen.
func (w *wire) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.streams, w.renewals, w.txns = 0, 0, nil
}

func (w *wire) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	if _, ok := req.(*pb.LeaseGrantRequest); ok && w.granting != nil {
		if err := w.granting(ctx); err != nil {
			return err
		}
	}
	if txn, ok := req.(*pb.TxnRequest); ok {
		w.mu.Lock()
		w.txns = append(w.txns, txn)
		w.mu.Unlock()
		if w.sent != nil {
			if err := w.sent(txn); err != nil {
				return err
			}
		}
		if w.answer != nil {
			return w.answer(txn, func() error {
				return invoke(context.WithoutCancel(ctx), method, req, reply, cc, opts...)
			})
		}
	}
	return invoke(ctx, method, req, reply, cc, opts...)
}

func (w *wire) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	renews := strings.HasSuffix(method, "/LeaseKeepAlive")
	if renews && w.opening != nil {
		if err := w.opening(); err != nil {
			return nil, err
		}
	}
	s, err := streamer(ctx, desc, cc, method, opts...)
	if err != nil || !renews {
		return s, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.streams++
	return &wired{s, w, w.streams - 1}, nil
}

// wired is a stream of keep-alives on a wire.
type wired struct {
	grpc.ClientStream
	*wire
	n int
}

func (s *wired) SendMsg(m any) error {
	s.mu.Lock()
	s.renewals++
	s.mu.Unlock()
	return s.ClientStream.SendMsg(m)
}

func (s *wired) RecvMsg(m any) error {
	for {
		if err := s.ClientStream.RecvMsg(m); err != nil || s.answered == nil {
			return err
		}
		arrives, err := s.answered(s.Context(), s.n, m.(*pb.LeaseKeepAliveResponse))
		if err != nil || arrives {
			return err
		}
	}
}

func TestABatchCostsAKeepAliveOfEachAndFewTxns(t *testing.T) {
	for _, c := range []struct {
		options layout
		shares  int
	}{{layout{}, 3}, {plain()[0], 5}} {
		t.Run(title(c.options), func(t *testing.T) {
			const n = 300
			store, w := wiredTo(t, c.options, testenv.Etcd(t))
			records := heldMany(t, store, n)
			w.reset()
			requireRefreshed(t, records, kvtest.RefreshAll(t, within(t, patience), store, records))
			require.Equal(t, n, w.renewals)
			require.Equal(t, c.shares, w.streams)
			require.Len(t, w.txns, c.shares)

			// One of them is gone.
			removeAll(t, dial(t, nil, testenv.Etcd(t)), c.options, records[7].Name)
			w.reset()
			for i, told := range kvtest.RefreshAll(t, within(t, patience), store, records) {
				if i == 7 {
					require.ErrorIs(t, told.Err, kv.ErrStale)
				} else {
					require.NoError(t, told.Err)
				}
			}
			reads := 1 // of the revisions
			if c.options.Plain {
				reads++ // a read of key and companion
			}
			require.Equal(t, n+1, w.renewals)
			require.Len(t, w.txns, c.shares+reads)
		})
	}
}

// Otherwise a member that is cut off would answer by what it has.
func TestEachTxnOfABatchIsLinearizable(t *testing.T) {
	store, w := wiredTo(t, layout{}, testenv.Etcd(t))
	records := heldMany(t, store, 200)
	removeAll(t, dial(t, nil, testenv.Etcd(t)), layout{}, records[7].Name)
	w.reset()
	kvtest.RefreshAll(t, within(t, patience), store, records)
	require.Len(t, w.txns, 3)
	for _, txn := range w.txns {
		branches := [][]*pb.RequestOp{txn.Success}
		if len(txn.Compare) > 0 {
			branches = append(branches, txn.Failure)
		}
		for _, ops := range branches {
			require.NotEmpty(t, ops)
			for _, op := range ops {
				require.NotNil(t, op.GetRequestRange())
				require.False(t, op.GetRequestRange().Serializable)
			}
		}
	}
}

// A lease that lives is no proof of the record, and a key that is there is no proof that
// its lease was alive before.
func TestABatchLooksAtTheKeysOnceTheLeasesAreKnownToLive(t *testing.T) {
	store, w := wiredTo(t, layout{}, testenv.Etcd(t))
	client := dial(t, nil, testenv.Etcd(t))
	records := heldMany(t, store, 10)
	answers, before := 0, 0
	w.answered = func(context.Context, int, *pb.LeaseKeepAliveResponse) (bool, error) {
		answers++
		return true, nil
	}
	w.sent = func(*pb.TxnRequest) error {
		before = answers
		remove(t, client, records[3].Name)
		w.sent = nil
		return nil
	}
	for i, told := range kvtest.RefreshAll(t, within(t, patience), store, records) {
		if i == 3 {
			require.ErrorIs(t, told.Err, kv.ErrStale)
		} else {
			require.NoError(t, told.Err)
		}
	}
	require.Equal(t, 10, before)
}

// Each is refreshed singly then, which decides.
func TestAKeepAliveThatIsDeniedOrLostSpoilsNoOther(t *testing.T) {
	for what, c := range map[string]struct {
		spoil  func(*pb.LeaseKeepAliveResponse) (arrives bool)
		always bool
	}{
		"denied once":   {func(resp *pb.LeaseKeepAliveResponse) bool { resp.TTL = 0; return true }, false},
		"denied always": {func(resp *pb.LeaseKeepAliveResponse) bool { resp.TTL = 0; return true }, true},
		"lost":          {func(*pb.LeaseKeepAliveResponse) bool { return false }, false},
	} {
		store, w := wiredTo(t, layout{}, testenv.Etcd(t))
		records := heldMany(t, store, 300)
		lease, spoiled := int64(leaseOf(t, records[7].Record)), false
		w.answered = func(_ context.Context, _ int, resp *pb.LeaseKeepAliveResponse) (bool, error) {
			if resp.ID != lease || spoiled && !c.always {
				return true, nil
			}
			spoiled = true
			return c.spoil(resp), nil
		}
		for i, told := range kvtest.RefreshAll(t, within(t, patience), store, records) {
			if i == 7 && c.always {
				requireDoubt(t, what, records[7].Record, told.Err)
				require.Zero(t, told.Record)
				continue
			}
			require.NoError(t, told.Err, "%s: %d", what, i)
			require.Equal(t, records[i].Record, told.Record)
		}
	}
}

// The answers that came before are good.
func TestAStreamThatFailsLeavesOpenWhatItHasNotAnswered(t *testing.T) {
	store, w := wiredTo(t, layout{}, testenv.Etcd(t))
	records := heldMany(t, store, 300)
	w.reset()
	answers := 0
	w.answered = func(_ context.Context, stream int, _ *pb.LeaseKeepAliveResponse) (bool, error) {
		if stream != 0 {
			return true, nil
		}
		answers++
		if answers > 10 {
			return false, status.Error(codes.Unavailable, "spoiled")
		}
		return true, nil
	}
	failed := 0
	for i, told := range kvtest.RefreshAll(t, within(t, patience), store, records) {
		if told.Err == nil {
			require.Equal(t, records[i].Record, told.Record)
			continue
		}
		failed++
		requireOpen(t, "refresh", told.Err)
		require.ErrorContains(t, told.Err, "spoiled")
		require.ErrorContains(t, told.Err, records[i].Name)
	}
	require.Contains(t, []int{127 - 10, 300 - 2*127 - 10}, failed, "one of the shares, but for what was answered")
}

func TestAStreamThatIsRefusedForOneLeaseSpoilsNoOther(t *testing.T) {
	store, w := wiredTo(t, layout{}, testenv.Etcd(t))
	records := heldMany(t, store, 300)
	forbidden := int64(leaseOf(t, records[7].Record))
	w.answered = func(_ context.Context, _ int, resp *pb.LeaseKeepAliveResponse) (bool, error) {
		if resp.ID == forbidden {
			return false, status.Error(codes.PermissionDenied, "etcdserver: permission denied")
		}
		return true, nil
	}
	for i, told := range kvtest.RefreshAll(t, within(t, patience), store, records) {
		if i == 7 {
			requireOpen(t, "refresh", told.Err)
		} else {
			require.NoError(t, told.Err)
		}
	}
}

func TestATxnThatFailsLeavesOpenWhatIsInIt(t *testing.T) {
	for _, which := range []string{"the first", "the reads"} {
		store, w := wiredTo(t, layout{}, testenv.Etcd(t))
		records := heldMany(t, store, 300)
		removeAll(t, dial(t, nil, testenv.Etcd(t)), layout{}, records[7].Name)
		w.sent = func(req *pb.TxnRequest) error {
			mine := len(req.Compare) > 0 && strings.HasSuffix(string(req.Compare[0].Key), records[0].Name)
			if which == "the reads" {
				mine = len(req.Compare) == 0
			}
			if mine {
				return status.Error(codes.Unavailable, "spoiled")
			}
			return nil
		}
		for i, told := range kvtest.RefreshAll(t, within(t, patience), store, records) {
			if i < 127 {
				requireOpen(t, which, told.Err)
				require.ErrorContains(t, told.Err, "spoiled")
				continue
			}
			require.NoError(t, told.Err)
			require.Equal(t, records[i].Record, told.Record)
		}
	}
}

// All that may be under way at once hang.
func TestWhatHangsDelaysNoOther(t *testing.T) {
	store, w := wiredTo(t, plain()[0], testenv.Etcd(t))
	const share, hanging = 63, 16 * 63
	records := heldMany(t, store, hanging+share)
	w.reset()
	w.answered = func(ctx context.Context, stream int, _ *pb.LeaseKeepAliveResponse) (bool, error) {
		if stream >= 16 {
			return true, nil
		}
		<-ctx.Done()
		return false, status.FromContextError(ctx.Err()).Err()
	}
	ctx, cancel := context.WithCancel(within(t, patience))
	defer cancel()
	told := make(chan error, len(records))
	var batch sync.WaitGroup
	batch.Go(func() {
		store.RefreshAll(ctx, records, func(_ int, _ kv.Record, err error) { told <- err })
	})
	for range len(records) - hanging {
		require.NoError(t, <-told)
	}
	cancel()
	batch.Wait()
	require.Len(t, told, hanging)
	for range hanging {
		require.ErrorIs(t, <-told, context.Canceled)
	}
}

// A flatterer answers all keep-alives, as a leader of etcd does that was just deposed.
type flatterer struct {
	grpc.ClientStream
	asked chan int64
}

func (f *flatterer) SendMsg(m any) error {
	f.asked <- m.(*pb.LeaseKeepAliveRequest).ID
	return nil
}

func (f *flatterer) RecvMsg(m any) error {
	resp := m.(*pb.LeaseKeepAliveResponse)
	resp.ID, resp.TTL = <-f.asked, int64(ample/time.Second)
	return nil
}

func (*flatterer) CloseSend() error { return nil }

func TestAMemberThatIsCutOffProvesNothing(t *testing.T) {
	t.Parallel() // it mostly waits
	cluster := steadyCluster(t)
	alone, others := cluster.Nodes[0], cluster.Nodes[1:]
	client := dialWith(t, nil, clientv3.Config{
		Endpoints: []string{alone.Addr()},
		DialOptions: []grpc.DialOption{grpc.WithChainStreamInterceptor(
			func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
				if strings.HasSuffix(method, "/LeaseKeepAlive") {
					return &flatterer{asked: make(chan int64, 1000)}, nil
				}
				return streamer(ctx, desc, cc, method, opts...)
			})},
	})
	store := etcdkv.New(client, &etcdkv.Options{Prefix: prefix})
	records := make([]kv.Held, 10)
	for i := range records {
		records[i].Name, records[i].Record = heldPatiently(t, store)
	}
	requireRefreshed(t, records, kvtest.RefreshAll(t, within(t, patience), store, records))
	for _, node := range others {
		node.Pause()
		defer node.Continue()
	}
	resp, err := client.Txn(within(t, patience)).
		If(clientv3.Compare(clientv3.ModRevision(prefix+records[0].Name), "=", int64(records[0].Record.Revision))).Commit()
	require.NoError(t, err)
	require.True(t, resp.Succeeded, "it answers what needs no majority")
	for _, told := range kvtest.RefreshAll(t, within(t, 3*time.Second), store, records) {
		requireOpen(t, "refresh", told.Err)
		require.Zero(t, told.Record)
	}
}
