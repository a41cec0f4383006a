package etcdkv_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/namespace"

	etcdkv "github.com/electkv/election/backends/etcd"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvtest"
)

// requireRefreshed requires that all of the records were refreshed.
func requireRefreshed(t testing.TB, records []kv.Held, told []kvtest.Verdict) {
	t.Helper()
	for i, v := range told {
		require.NoError(t, v.Err)
		require.GreaterOrEqual(t, v.Record.TTL, records[i].Record.TTL)
		v.Record.TTL = records[i].Record.TTL // it may be more than was left when it was created
		require.Equal(t, records[i].Record, v.Record)
	}
}

// heldMany puts records into new safes.
func heldMany(t testing.TB, store kv.Store, n int) []kv.Held {
	t.Helper()
	records, errs := make([]kv.Held, n), make([]error, n)
	var crowd sync.WaitGroup
	next := make(chan int)
	for range 16 {
		crowd.Go(func() {
			for i := range next {
				name := rand.Text()
				rec, err := store.Create(within(t, patience), name, signed("held"))
				records[i], errs[i] = kv.Held{Name: name, Record: rec}, err
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	crowd.Wait()
	require.NoError(t, errors.Join(errs...))
	return records
}

// What each is told is what Refresh tells, and has nothing to do with the others.
func TestABatchTellsOfEachRecordWhatARefreshTells(t *testing.T) {
	client := dial(t, nil, testenv.Etcd(t))
	other, err := client.Grant(within(t, patience), 600)
	require.NoError(t, err)
	each(t, everyLayout(), func(t *testing.T, options layout) {
		store := openWith(t, nil, options, testenv.Etcd(t))
		putBack := func(name string, opts ...clientv3.OpOption) {
			key := places(t, client, options, name)[0]
			resp, err := client.Get(within(t, patience), prefix+key)
			require.NoError(t, err)
			put(t, client, key, string(resp.Kvs[0].Value), opts...)
		}
		records := heldMany(t, store, 20)
		wants, whats := make([]error, len(records)), slices.Repeat([]string{"left alone"}, len(records))
		for _, c := range []struct {
			what string
			harm func(name string, rec kv.Record) kv.Held
			want error
		}{
			{"published meanwhile", func(name string, rec kv.Record) kv.Held {
				publish(t, store, name, rec, "published")
				return kv.Held{Name: name, Record: rec}
			}, nil},
			{"of an unknown revision", func(name string, rec kv.Record) kv.Held {
				rec.Revision = 0
				return kv.Held{Name: name, Record: rec}
			}, nil},
			{"of an unknown revision, and deleted", func(name string, rec kv.Record) kv.Held {
				removeAll(t, client, options, name)
				rec.Revision = 0
				return kv.Held{Name: name, Record: rec}
			}, kv.ErrStale},
			{"deleted", func(name string, rec kv.Record) kv.Held {
				removeAll(t, client, options, name)
				return kv.Held{Name: name, Record: rec}
			}, kv.ErrStale},
			{"overwritten", func(name string, rec kv.Record) kv.Held {
				putOver(t, client, options, name, "somebody")
				return kv.Held{Name: name, Record: rec}
			}, kv.ErrStale},
			{"put back without its lease", func(name string, rec kv.Record) kv.Held {
				rec = publish(t, store, name, rec, "published") // the text has the token now
				putBack(name)
				return kv.Held{Name: name, Record: rec}
			}, kv.ErrStale},
			{"put back with another lease", func(name string, rec kv.Record) kv.Held {
				rec = publish(t, store, name, rec, "published")
				putBack(name, clientv3.WithLease(other.ID))
				return kv.Held{Name: name, Record: rec}
			}, kv.ErrStale},
			{"taken over", func(name string, rec kv.Record) kv.Held {
				_, err := store.Swap(within(t, patience), name, rec, signed("next"))
				require.NoError(t, err)
				return kv.Held{Name: name, Record: rec}
			}, kv.ErrStale},
			{"back under another token", func(name string, rec kv.Record) kv.Held {
				require.NoError(t, store.Delete(within(t, patience), name, rec))
				_, err := store.Create(within(t, patience), name, rec)
				require.NoError(t, err)
				return kv.Held{Name: name, Record: rec}
			}, kv.ErrStale},
			{"revoked with its lease", func(name string, rec kv.Record) kv.Held {
				_, err := client.Revoke(within(t, patience), leaseOf(t, rec))
				require.NoError(t, err)
				return kv.Held{Name: name, Record: rec}
			}, kv.ErrStale},
			{"without a lease", func(name string, rec kv.Record) kv.Held {
				rec.Lease = ""
				return kv.Held{Name: name, Record: rec}
			}, kv.ErrStale},
			{"with a lease that is none", func(name string, rec kv.Record) kv.Held {
				rec.Lease = "not a lease"
				return kv.Held{Name: name, Record: rec}
			}, kv.ErrInvalid},
			{"without a name", func(_ string, rec kv.Record) kv.Held {
				return kv.Held{Record: rec}
			}, kv.ErrInvalid},
			{"of no signature", func(name string, rec kv.Record) kv.Held {
				rec.Signature = ""
				return kv.Held{Name: name, Record: rec}
			}, kv.ErrInvalid},
			{"foreign", func(name string, rec kv.Record) kv.Held {
				rec.Foreign = true
				return kv.Held{Name: name, Record: rec}
			}, kv.ErrInvalid},
			{"without its companion", func(name string, rec kv.Record) kv.Held {
				_, companion := where(options, name, rec)
				remove(t, client, companion)
				return kv.Held{Name: name, Record: rec}
			}, kv.ErrStale},
			{"not the first in line", func(name string, _ kv.Record) kv.Held {
				return kv.Held{Name: name, Record: joined(t, store, name, signed("waits"))}
			}, kv.ErrStale},
		} {
			if c.what == "without its companion" && !options.Plain || c.what == "not the first in line" && !options.queue {
				continue
			}
			name, rec := held(t, store)
			records = slices.Insert(records, len(records)/2, c.harm(name, rec))
			wants = slices.Insert(wants, len(wants)/2, c.want)
			whats = slices.Insert(whats, len(whats)/2, c.what)
		}
		for i, told := range kvtest.RefreshAll(t, within(t, patience), store, records) {
			require.ErrorIs(t, told.Err, wants[i], whats[i])
			rec, err := store.Refresh(within(t, patience), records[i].Name, records[i].Record)
			require.Equal(t, rec, told.Record, whats[i])
			require.Equal(t, fmt.Sprint(err), fmt.Sprint(told.Err), whats[i])
			switch whats[i] {
			case "published meanwhile":
				require.Equal(t, "published", told.Record.Value)
			case "left alone":
				require.Equal(t, records[i].Record, told.Record)
			}
			// It is the only reason why a Txn might be refused.
			last := kvtest.RefreshAll(t, within(t, patience), store, []kv.Held{records[0], records[1], records[i]})
			requireRefreshed(t, records[:2], last[:2])
			require.Equal(t, rec, last[2].Record, whats[i])
			require.Equal(t, fmt.Sprint(err), fmt.Sprint(last[2].Err), whats[i])
		}
	})
}

func TestABatchOfNoneAsksNothing(t *testing.T) {
	var sent count
	store := open(t, &sent, testenv.Etcd(t))
	require.Empty(t, kvtest.RefreshAll(t, within(t, patience), store, nil))
	require.Zero(t, sent.Load())
}

func TestABatchWithoutAClientIsRefused(t *testing.T) {
	for _, told := range kvtest.RefreshAll(t, within(t, patience), etcdkv.New(nil, nil), []kv.Held{{Name: "safe", Record: signed("v")}}) {
		require.ErrorIs(t, told.Err, kv.ErrInvalid)
	}
}

// A lease that several records have is kept alive for all of them.
func TestABatchStartsTTLsAnew(t *testing.T) {
	client := dial(t, nil, testenv.Etcd(t))
	each(t, everyLayout()[:2], func(t *testing.T, options layout) {
		t.Parallel() // mostly it waits
		store := openWith(t, nil, options, testenv.Etcd(t))
		records := heldMany(t, store, 2)
		name, rec := held(t, store)
		rec, err := store.Swap(within(t, patience), name, rec, records[0].Record)
		require.NoError(t, err)
		records = append(records, kv.Held{Name: name, Record: rec})
		left := func(i int) int64 {
			resp, err := client.TimeToLive(within(t, patience), leaseOf(t, records[i].Record))
			require.NoError(t, err)
			return resp.TTL
		}
		time.Sleep(5 * time.Second)
		before := []int64{left(0), left(1)}
		requireRefreshed(t, records, kvtest.RefreshAll(t, within(t, patience), store, records))
		for i, ttl := range before {
			require.Greater(t, left(i), ttl)
		}
	})
}

func TestABatchReturnsWhenItsContextEnds(t *testing.T) {
	errCause := errors.New("the candidate resigns")
	each(t, everyLayout(), func(t *testing.T, options layout) {
		server := testenv.StartEtcd(t)
		var sent count
		store := openWith(t, &sent, options, server.Addr())
		records := heldMany(t, store, 300)
		requireTold := func(ctx context.Context, want error) {
			t.Helper()
			for _, told := range kvtest.RefreshAll(t, ctx, store, records) {
				requireOpen(t, "refresh", told.Err)
				require.ErrorIs(t, told.Err, want)
				require.Zero(t, told.Record)
			}
		}
		before, asked := runtime.NumGoroutine(), sent.Load()
		over, end := context.WithCancelCause(t.Context())
		end(errCause)
		requireTold(over, errCause)
		require.Equal(t, asked, sent.Load(), "nothing was asked of the server")

		server.Pause()
		ctx, end := context.WithCancelCause(t.Context())
		time.AfterFunc(300*time.Millisecond, func() { end(errCause) })
		start := time.Now()
		requireTold(ctx, errCause)
		require.Less(t, time.Since(start), patience)
		requireTold(within(t, 300*time.Millisecond), context.DeadlineExceeded)
		server.Continue()
		require.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+2 }, patience, 10*time.Millisecond,
			"goroutines are left behind")
		requireRefreshed(t, records, kvtest.RefreshAll(t, within(t, patience), store, records))
	})
}

// It is called off at every moment: while the leases are kept alive, and after that.
func TestABatchThatIsCalledOffTellsOfEachRecord(t *testing.T) {
	store := open(t, nil, testenv.Etcd(t))
	records := heldMany(t, store, 300)
	start := time.Now()
	requireRefreshed(t, records, kvtest.RefreshAll(t, within(t, patience), store, records))
	late := time.Since(start)
	const calls = 30
	for i := range calls {
		ctx, cancel := context.WithCancel(within(t, patience))
		late := time.AfterFunc(late*time.Duration(i)/calls, cancel)
		for i, told := range kvtest.RefreshAll(t, ctx, store, records) {
			if told.Err != nil {
				require.ErrorIs(t, told.Err, context.Canceled)
				requireOpen(t, "refresh", told.Err)
			} else {
				require.Equal(t, records[i].Record, told.Record)
			}
		}
		late.Stop()
		cancel()
	}
	requireRefreshed(t, records, kvtest.RefreshAll(t, within(t, patience), store, records))
}

// A wrapped lease is what somebody puts in the client's place, to see what is kept alive
// say.
type wrapped struct {
	clientv3.Lease
	hangs map[clientv3.LeaseID]bool
	mu    sync.Mutex
	seen  map[clientv3.LeaseID]int
}

func (w *wrapped) KeepAliveOnce(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseKeepAliveResponse, error) {
	w.mu.Lock()
	w.seen[id]++
	w.mu.Unlock()
	if w.hangs[id] {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return w.Lease.KeepAliveOnce(ctx, id)
}

func TestABatchUsesWhatTheClientsLeasesAreWrappedIn(t *testing.T) {
	client := dial(t, nil, testenv.Etcd(t))
	w := &wrapped{Lease: client.Lease, seen: make(map[clientv3.LeaseID]int)}
	client.Lease = w
	store := etcdkv.New(client, &etcdkv.Options{Prefix: prefix})
	records := heldMany(t, store, 100)
	requireRefreshed(t, records, kvtest.RefreshAll(t, within(t, patience), store, records))
	for _, r := range records {
		require.Positive(t, w.seen[leaseOf(t, r.Record)])
	}

	// Half of them hang, which are more than may be under way at once.
	w.hangs = make(map[clientv3.LeaseID]bool)
	for _, r := range records[:50] {
		w.hangs[leaseOf(t, r.Record)] = true
	}
	ctx, cancel := context.WithCancel(within(t, patience))
	defer cancel()
	told := make(chan int, len(records))
	errs := make([]error, len(records))
	var batch sync.WaitGroup
	batch.Go(func() {
		store.RefreshAll(ctx, records, func(i int, _ kv.Record, err error) { errs[i] = err; told <- i })
	})
	for range records[50:] {
		i := <-told
		require.GreaterOrEqual(t, i, 50)
		require.NoError(t, errs[i])
	}
	cancel()
	batch.Wait()
	require.Len(t, told, 50)
	for _, err := range errs[:50] {
		require.ErrorIs(t, err, context.Canceled)
	}
}

func TestABatchStaysInItsNamespace(t *testing.T) {
	plain := dial(t, nil, testenv.Etcd(t))
	for _, leases := range []bool{false, true} {
		client := dial(t, nil, testenv.Etcd(t))
		client.KV = namespace.NewKV(client.KV, prefix)
		client.Watcher = namespace.NewWatcher(client.Watcher, prefix)
		if leases {
			client.Lease = namespace.NewLease(client.Lease, prefix)
		}
		store := etcdkv.New(client, &etcdkv.Options{Prefix: "within/"})
		records := heldMany(t, store, 10)
		requireRefreshed(t, records, kvtest.RefreshAll(t, within(t, patience), store, records))
		remove(t, plain, "within/"+records[3].Name)
		for i, told := range kvtest.RefreshAll(t, within(t, patience), store, records) {
			if i == 3 {
				require.ErrorIs(t, told.Err, kv.ErrStale)
			} else {
				require.NoError(t, told.Err)
			}
		}
	}
}

// All of them would be one Txn, which the server refuses for the one.
func TestARecordThatAUserMayNotReadSpoilsNoOther(t *testing.T) {
	addr, root := guarded(t)
	all := heldMany(t, etcdkv.New(root, &etcdkv.Options{Prefix: prefix}), 10)
	for i := range all {
		all[i].Name = prefix + all[i].Name
	}
	forbidden := heldMany(t, etcdkv.New(root, nil), 1)[0]
	store := etcdkv.New(candidate(t, addr), nil)
	requireRefreshed(t, all, kvtest.RefreshAll(t, within(t, patience), store, all))
	told := kvtest.RefreshAll(t, within(t, patience), store, append(all, forbidden))
	requireRefreshed(t, all, told[:10])
	requireOpen(t, "refresh", told[10].Err)
	require.ErrorIs(t, told[10].Err, rpctypes.ErrPermissionDenied)
	require.NotContains(t, told[10].Err.Error(), secret)
}

func TestABatchIsCarriedOutThoughTheServerTakesSmallerTxns(t *testing.T) {
	store := open(t, nil, testenv.StartEtcd(t, "--max-txn-ops", "50").Addr())
	records := heldMany(t, store, 60)
	requireRefreshed(t, records, kvtest.RefreshAll(t, within(t, patience), store, records))
}
