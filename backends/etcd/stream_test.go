package etcdkv_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/namespace"
	"google.golang.org/grpc"

	etcdkv "github.com/electkv/election/backends/etcd"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// A meddler sees what a client sends and receives on its streams of watches, one message at
// a time.
type meddler struct {
	send    func(*pb.WatchRequest)
	receive func(*pb.WatchResponse)
}

func (m *meddler) intercept(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := streamer(ctx, desc, cc, method, opts...)
	if err != nil || !strings.HasSuffix(method, "/Watch") {
		return s, err
	}
	return meddledStream{s, m}, nil
}

type meddledStream struct {
	grpc.ClientStream
	*meddler
}

func (s meddledStream) SendMsg(req any) error {
	if s.send != nil {
		s.send(req.(*pb.WatchRequest))
	}
	return s.ClientStream.SendMsg(req)
}

func (s meddledStream) RecvMsg(resp any) error {
	err := s.ClientStream.RecvMsg(resp)
	if err == nil && s.receive != nil {
		s.receive(resp.(*pb.WatchResponse))
	}
	return err
}

// streaming returns a store whose streams of watches are meddled with.
func streaming(t testing.TB, sent *count, m *meddler, options layout) anyStore {
	t.Helper()
	options.Prefix = prefix
	return options.with(dialWith(t, sent, clientv3.Config{
		Endpoints:   []string{testenv.Etcd(t)},
		DialOptions: []grpc.DialOption{grpc.WithChainStreamInterceptor(m.intercept)},
	}))
}

func TestToFollowManySafesTakesAHandfulOfGoroutines(t *testing.T) {
	const safes, handful = 500, 8
	writer := open(t, nil, testenv.Etcd(t))
	names, recs := holdMany(t, writer, safes)
	store := open(t, nil, testenv.Etcd(t))
	_, err := store.Get(within(t, patience), names[0]) // there is a connection
	require.NoError(t, err)
	before, used := runtime.NumGoroutine(), heap()
	f := following(t, store, names...)
	f.seeAll(recs)
	settles(t, before+handful)
	t.Logf("%d bytes per follow", (heap()-used)/safes)
	publishAll(t, writer, recs, "published")
	f.seeAll(recs)
	settles(t, before+handful)
	f.stop()
	settles(t, before)
}

// They see what has changed while there was none, and ask for it once each.
func TestManyFollowersOutliveTheirStream(t *testing.T) {
	const safes = 300
	var sent count
	proxy := testenv.NewProxy(t, testenv.Etcd(t))
	writer := open(t, nil, testenv.Etcd(t))
	names, recs := holdMany(t, writer, safes)
	store := open(t, &sent, proxy.Addr())
	f := following(t, store, names...)
	f.seeAll(recs)
	for seen := 0; seen < 2; {
		before, began := sent.Load(), time.Now()
		proxy.Cut()
		for _, name := range names[:safes/30] { // not all, since a cut that lasts long ends follows
			recs[name] = publish(t, writer, name, recs[name], rand.Text())
		}
		proxy.Heal()
		if time.Since(began) > 3*time.Second {
			f.stop()
			f = following(t, store, names...)
			f.seeAll(recs)
			continue
		}
		seen++
		f.seeAll(recs)
		n := sent.Load() - before
		t.Logf("%d messages for %d follows", n, safes)
		require.LessOrEqual(t, n, int64(3*safes), "a watch and a read of each, and some that were lost")
		publishAll(t, writer, recs, rand.Text())
		f.seeAll(recs)
	}
}

// Followers come and go while streams die. In the end nothing is left.
func TestNothingIsLeftOfStreamsThatNobodyFollows(t *testing.T) {
	proxy := testenv.NewProxy(t, testenv.Etcd(t))
	names, recs := holdMany(t, open(t, nil, testenv.Etcd(t)), 10)
	store := open(t, nil, proxy.Addr())
	_, err := store.Get(within(t, patience), names[0])
	require.NoError(t, err)
	before := runtime.NumGoroutine()
	var crowd sync.WaitGroup
	var shown atomic.Int32
	for i, name := range names {
		crowd.Go(func() {
			for range 30 {
				told := make(chan sighting, 100)
				stop := store.Follow(name, func(rec kv.Record, err error) { told <- sighting{rec, err} })
				if i%2 == 0 {
					// A look that the proxy cuts off again and again may end with an error.
					switch got := <-told; {
					case got == (sighting{rec: recs[name]}):
						shown.Add(1)
					case got.err == nil || errors.Is(got.err, kv.ErrVacant):
						t.Errorf("%s: %+v, %v", name, got.rec, got.err)
					}
				}
				stop()
			}
		})
	}
	for range 5 {
		time.Sleep(20 * time.Millisecond)
		proxy.Cut()
		proxy.Heal()
	}
	crowd.Wait()
	require.Greater(t, shown.Load(), int32(75), "of 150")
	settles(t, before)
}

// The server has compacted what a slow watch was still to be told of, which is what has
// changed in one safe.
func TestAWatchThatTheServerEndsIsOpenedAloneAgain(t *testing.T) {
	var armed atomic.Bool
	var asked, ended atomic.Int32
	m := &meddler{
		send: func(req *pb.WatchRequest) {
			if req.GetCreateRequest() != nil {
				asked.Add(1)
			}
		},
		receive: func(resp *pb.WatchResponse) {
			if len(resp.Events) > 0 && armed.CompareAndSwap(true, false) {
				ended.Add(1)
				*resp = pb.WatchResponse{Header: resp.Header, WatchId: resp.WatchId, Canceled: true, CompactRevision: resp.Header.Revision}
			}
		},
	}
	writer := open(t, nil, testenv.Etcd(t))
	names, recs := holdMany(t, writer, 20)
	f := following(t, streaming(t, nil, m, layout{}), names...)
	f.seeAll(recs)
	for i, name := range names[:3] {
		armed.Store(true)
		recs[name] = publish(t, writer, name, recs[name], "while its watch ends")
		f.seeAll(recs)
		require.EqualValues(t, i+1, ended.Load())
		require.EqualValues(t, len(names)+i+1, asked.Load(), "one watch is opened anew")
	}
	publishAll(t, writer, recs, "after")
	f.seeAll(recs)
}

func TestAWatchThatIsDeniedEndsNoOther(t *testing.T) {
	addr, root := guarded(t)
	writer := etcdkv.New(root, &etcdkv.Options{})
	var recs [2]kv.Record
	names := [2]string{prefix + "allowed", "forbidden"}
	for i, name := range names {
		var err error
		recs[i], err = writer.Create(within(t, patience), name, signed("v"))
		require.NoError(t, err)
	}
	store := etcdkv.New(candidate(t, addr), &etcdkv.Options{})
	w := watching(t, store, names[0])
	require.Equal(t, recs[0], w.next().rec)
	for range 3 {
		require.ErrorIs(t, watching(t, store, names[1]).next().err, rpctypes.ErrPermissionDenied)
		recs[0] = publish(t, writer, names[0], recs[0], recs[0].Value+"+")
		require.Equal(t, sighting{rec: recs[0]}, w.next())
	}
}

// A stream has the token with which it began. The server takes that back from time to time,
// and denies what is asked with it.
func TestAWatchIsOpenedThoughTheStreamsTokenIsVoid(t *testing.T) {
	addr, root := guarded(t)
	store := etcdkv.New(candidate(t, addr), &etcdkv.Options{Prefix: prefix})
	names, recs := holdMany(t, store, 2)
	before := runtime.NumGoroutine()
	f := following(t, store)
	for _, name := range names {
		f.add(name)
		require.Eventually(t, func() bool { return f.told(name) == sighting{rec: recs[name]} }, patience, 10*time.Millisecond)
		_, err := root.UserChangePassword(within(t, patience), "candidate", secret)
		require.NoError(t, err)
	}
	publishAll(t, store, recs, "published")
	f.seeAll(recs)
	f.stop()
	settles(t, before)
}

// A client may be wrapped, and watch other keys than it is told to.
func TestAWatchByAWrappedClientIsOfTheKeysThatThatUses(t *testing.T) {
	client := dial(t, nil, testenv.Etcd(t))
	space := rand.Text() + "/"
	client.KV = namespace.NewKV(client.KV, space)
	client.Watcher = namespace.NewWatcher(client.Watcher, space)
	client.Lease = namespace.NewLease(client.Lease, space)
	each(t, everyLayout(), func(t *testing.T, options layout) {
		options.Prefix = prefix
		store := options.with(client)
		names, recs := holdMany(t, store, 3)
		before := runtime.NumGoroutine()
		f := following(t, store, names...)
		f.seeAll(recs)
		publishAll(t, store, recs, "published")
		f.seeAll(recs)
		f.stop()
		settles(t, before)
		if !options.lined() {
			resp, err := dial(t, nil, testenv.Etcd(t)).Get(within(t, patience), space+prefix+names[0])
			require.NoError(t, err)
			require.Len(t, resp.Kvs, 1)
		}
	})
}

// A gRPC proxy of etcd's gives watches ids of its own, and confirms them in any order.
func TestAServerWithIDsOfItsOwnIsAskedForOneWatchAtATime(t *testing.T) {
	var waiting, most atomic.Int32
	m := &meddler{
		send: func(req *pb.WatchRequest) {
			if create := req.GetCreateRequest(); create != nil {
				create.WatchId = 0
				most.Store(max(most.Load(), waiting.Add(1)))
			}
		},
		receive: func(resp *pb.WatchResponse) {
			if resp.Created {
				waiting.Add(-1)
			}
		},
	}
	writer := open(t, nil, testenv.Etcd(t))
	names, recs := holdMany(t, writer, 50)
	f := following(t, streaming(t, nil, m, layout{}), names...)
	f.seeAll(recs)
	publishAll(t, writer, recs, "published")
	f.seeAll(recs)
	require.EqualValues(t, 1, most.Load())
}

// While nothing changes, one watch per round proves for all that the connection lives.
func TestIdleWatchesSendAReadARoundEach(t *testing.T) {
	t.Parallel() // it mostly waits
	const safes, backstop = 50, time.Second
	var sent count
	store := etcdkv.New(dial(t, &sent, testenv.Etcd(t)), &etcdkv.Options{Prefix: prefix, Backstop: backstop})
	names, recs := holdMany(t, store, safes)
	f := following(t, store, names...)
	f.seeAll(recs)
	before, start := sent.Load(), time.Now()
	time.Sleep(4 * backstop)
	n := sent.Load() - before
	rounds := int64(time.Since(start)/(backstop*3/4)) + 1 // at most
	t.Logf("%d messages in up to %d rounds of %d safes", n, rounds, safes)
	require.GreaterOrEqual(t, n, int64(safes))
	require.LessOrEqual(t, n, rounds*(safes+10))
}

// The connection lives, and answers reads, but the watches on it are dead.
func TestAStreamThatIsDeadInSilenceIsNoticed(t *testing.T) {
	t.Parallel() // it mostly waits
	proxy := testenv.NewProxy(t, testenv.Etcd(t))
	writer := open(t, nil, testenv.Etcd(t))
	names, recs := holdMany(t, writer, 5)
	store := etcdkv.New(dial(t, nil, proxy.Addr()), &etcdkv.Options{Prefix: prefix, Backstop: time.Second})
	failed := make(chan error, 100)
	for _, name := range names {
		t.Cleanup(store.Follow(name, func(_ kv.Record, err error) {
			if err != nil {
				failed <- err
			}
		}))
	}
	f := following(t, store, names...)
	f.seeAll(recs)
	proxy.MuteStreams(func(asked []byte) bool { return strings.Contains(string(asked), prefix) })
	select {
	case err := <-failed:
		require.ErrorContains(t, err, "no answer")
	case <-time.After(patience):
		require.Fail(t, "nobody notices")
	}
}

func BenchmarkFollow(b *testing.B) {
	client, store := dial(b, nil, testenv.Etcd(b)), open(b, nil, testenv.Etcd(b))
	names, run := make([]string, b.N), rand.Text()
	for first := 0; first < b.N; first += 100 {
		var puts []clientv3.Op
		for i := first; i < min(first+100, b.N); i++ {
			names[i] = fmt.Sprintf("%s %d", run, i)
			puts = append(puts, clientv3.OpPut(prefix+names[i], kv.Encode(signed("10.0.0.7:80"))))
		}
		_, err := client.Txn(within(b, patience)).Then(puts...).Commit()
		require.NoError(b, err)
	}
	usage := func() (bytes int64) {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc + m.StackInuse)
	}
	before, goroutines := usage(), runtime.NumGoroutine()
	told := make(chan struct{}, b.N)
	b.ResetTimer()
	for _, name := range names {
		b.Cleanup(store.Follow(name, func(kv.Record, error) { told <- struct{}{} }))
	}
	for range names {
		<-told
	}
	b.StopTimer()
	time.Sleep(time.Second) // until what is done has ended
	b.ReportMetric(float64(usage()-before)/float64(b.N), "B/follow")
	b.ReportMetric(float64(runtime.NumGoroutine()-goroutines)/float64(b.N), "goroutines/follow")
}
