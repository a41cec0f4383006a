package etcdkv_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	etcdkv "github.com/electkv/election/backends/etcd"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvtest"
)

// A sharer lets all records share leases from the start.
type sharer struct{ anyStore }

func (s sharer) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	rec.Shared = true
	return s.anyStore.Create(ctx, name, rec)
}

func TestAStoreWhoseRecordsShareKeepsTheContract(t *testing.T) {
	testenv.Long(t)
	b := backend(layout{}, testenv.Etcd(t))
	open := b.Open
	b.Open = func(t testing.TB) kv.Store { return sharer{open(t).(anyStore)} }
	others := []string{
		// Of heirs, which may not share a lease with their leader, and do.
		"tokens grow across hand-overs in one step",
		"nothing is handed over in one step to another than the heir",
		// Of the TTL, which is a little shorter until a refresh.
		"lifetime and create agree on which TTLs are to be had",
		"publishing a note alone is a change",
		"a create that was cut short can be adopted",
	}
	kvtest.RunCases(t, b, slices.DeleteFunc(kvtest.Cases(), func(c kvtest.Case) bool { return slices.Contains(others, c.Name) }))
}

// countGrants counts the leases that are granted.
func (w *wire) countGrants() *atomic.Int32 {
	var n atomic.Int32
	w.granting = func(context.Context) error {
		n.Add(1)
		return nil
	}
	return &n
}

func TestRecordsShareALeaseFromTheStart(t *testing.T) {
	store, w := wiredTo(t, layout{}, testenv.Etcd(t))
	grants := w.countGrants()
	records := mayShare(heldMany(t, sharer{store}, 1200))
	count := leasesOf(records)
	require.Len(t, count, 3)
	for _, n := range count {
		require.LessOrEqual(t, n, 500)
	}
	require.EqualValues(t, 3, grants.Load())
	requireRefreshed(t, records, kvtest.RefreshAll(t, within(t, patience), store, records))
	stands(t, store, records[0], records[300], records[1199])
}

// A process that takes and releases a lock again and again needs no new lease each time.
func TestAReleaseLeavesTheLeaseForTheNextRecord(t *testing.T) {
	for tries := 1; ; tries++ {
		store, w := wiredTo(t, layout{}, testenv.Etcd(t))
		grants := w.countGrants()
		leases := make(map[string]bool)
		began := time.Now()
		for range 10 {
			name, rec := held(t, sharer{store})
			leases[rec.Lease] = true
			require.NoError(t, store.Delete(within(t, patience), name, rec))
		}
		if len(leases) > 1 && tries < 5 && time.Since(began) > etcdkv.Lately {
			continue // a lease that was not kept alive lately may be replaced
		}
		require.Len(t, leases, 1)
		require.EqualValues(t, 1, grants.Load())
		return
	}
}

func TestRecordsThatCannotShareHaveLeasesOfTheirOwn(t *testing.T) {
	for _, options := range everyLayout() {
		if options.Plain || options.lined() {
			t.Run(title(options), func(t *testing.T) {
				store := openWith(t, nil, options, testenv.Etcd(t))
				require.Len(t, leasesOf(heldMany(t, sharer{store}, 3)), 3)
			})
		}
	}
	t.Run("it is to fade by its TTL alone", func(t *testing.T) {
		store := sharer{open(t, nil, testenv.Etcd(t))}
		_, beside := held(t, store)
		draft := signed("v")
		draft.Lasting = true
		rec, err := store.Create(within(t, patience), draft.Signature, draft)
		require.NoError(t, err)
		require.NotEqual(t, beside.Lease, rec.Lease)
	})
	t.Run("nobody has asked", func(t *testing.T) {
		require.Len(t, leasesOf(heldMany(t, open(t, nil, testenv.Etcd(t)), 3)), 3)
	})
}

// The TTL of a record counts from the start of the call that has created it, however old its
// lease is.
func TestALeaseIsKeptAliveBeforeARecordHasIt(t *testing.T) {
	const slept = 3 * time.Second
	store, w := wiredTo(t, layout{}, testenv.Etcd(t))
	client := dial(t, nil, testenv.Etcd(t))
	_, first := held(t, sharer{store})
	time.Sleep(slept)
	began := time.Now()
	var late func() error
	w.answer = func(_ *pb.TxnRequest, send func() error) error {
		late, w.answer = send, nil
		return rpctypes.ErrGRPCTimeout
	}
	draft := signed("late")
	name := draft.Signature
	_, err := sharer{store}.Create(within(t, patience), name, draft)
	requireOpen(t, "create", err)
	require.NoError(t, late())
	rec, err := store.Get(within(t, patience), name)
	require.NoError(t, err)
	require.Equal(t, first.Lease, rec.Lease)
	lives, err := client.TimeToLive(within(t, patience), leaseOf(t, rec))
	require.NoError(t, err)
	left := time.Duration(lives.TTL+1) * time.Second // it tells whole seconds
	require.GreaterOrEqual(t, left, rec.TTL-time.Since(began))
}

// Its lease would keep it alive as long as the neighbours are refreshed.
func TestARecordThatIsCreatedLateFades(t *testing.T) {
	for what, carriedOut := range map[string]bool{"late": false, "and the answer is lost": true} {
		t.Run(what, func(t *testing.T) {
			t.Parallel() // mostly it waits
			inTime(t, func(ttl time.Duration) bool { return whatIsCreatedLateFades(t, ttl, carriedOut) })
		})
	}
}

func whatIsCreatedLateFades(t *testing.T, ttl time.Duration, carriedOut bool) bool {
	store, w := wiredTo(t, layout{}, testenv.Etcd(t))
	b := beats(ttl)
	others := shortLived(t, sharer{store}, ttl, 2)
	if b.late() {
		return false
	}
	require.Len(t, leasesOf(others), 1)
	var late func() error
	w.answer = func(_ *pb.TxnRequest, send func() error) error {
		late, w.answer = send, nil
		if carriedOut {
			require.NoError(t, send())
		}
		return rpctypes.ErrGRPCTimeout
	}
	rec := signed("late")
	rec.TTL = ttl
	name := rec.Signature
	_, err := sharer{store}.Create(within(t, patience), name, rec)
	requireOpen(t, "create", err)
	began := time.Now()
	if !carriedOut {
		if others = b.refreshAll(t, store, others); others == nil { // they come to leave the lease
			return false
		}
		err = late()
		if b.late() {
			return false
		}
		require.NoError(t, err)
	}
	got, err := store.Get(within(t, patience), name)
	if b.late() {
		return false
	}
	require.NoError(t, err)
	require.Equal(t, rec.Signature, got.Signature)
	life, err := store.Lifetime(ttl)
	require.NoError(t, err)
	for {
		if _, err := store.Get(within(t, patience), name); err != nil {
			require.ErrorIs(t, err, kv.ErrVacant)
			break
		}
		require.Less(t, time.Since(began), 2*life.Max+patience)
		time.Sleep(ttl / 10)
		if others = b.refreshAll(t, store, others); others == nil {
			return false
		}
	}
	if b.late() {
		return false
	}
	require.Len(t, leasesOf(others), 1)
	require.NotEqual(t, got.Lease, others[0].Record.Lease)
	if b.refreshAll(t, store, others) == nil {
		return false
	}
	_, next := held(t, sharer{store})
	require.NotEqual(t, got.Lease, next.Lease)
	return true
}

// The lease of a lock that is used now and then is over by then.
func TestALeaseThatIsOverIsReplaced(t *testing.T) {
	for what, end := range map[string]func(t testing.TB, w *wire, rec kv.Record){
		"revoked": func(t testing.TB, _ *wire, rec kv.Record) {
			_, err := dial(t, nil, testenv.Etcd(t)).Revoke(within(t, patience), leaseOf(t, rec))
			require.NoError(t, err)
		},
		"denied by a new leader that has not caught up": func(_ testing.TB, w *wire, _ kv.Record) {
			w.answered = func(_ context.Context, _ int, resp *pb.LeaseKeepAliveResponse) (bool, error) {
				resp.TTL = 0
				return true, nil
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			store, w := wiredTo(t, layout{}, testenv.Etcd(t))
			name, rec := held(t, sharer{store})
			place, own := held(t, store)
			require.NoError(t, store.Delete(within(t, patience), name, rec))
			end(t, w, rec)
			if w.answered != nil {
				time.Sleep(time.Second) // till it has to be kept alive
			}
			_, next := held(t, sharer{store})
			require.NotEqual(t, rec.Lease, next.Lease)
			w.answered = nil
			stands(t, store, kv.Held{Name: place, Record: own})
		})
	}
}

func TestAGrantThatFailsCreatesNothing(t *testing.T) {
	store, w := wiredTo(t, layout{}, testenv.Etcd(t))
	w.granting = func(context.Context) error {
		w.granting = nil
		return rpctypes.ErrGRPCNoSpace
	}
	draft := signed("v")
	_, err := sharer{store}.Create(within(t, patience), draft.Signature, draft)
	requireOpen(t, "create", err)
	requireVacant(t, store, draft.Signature)
	require.Len(t, leasesOf(heldMany(t, sharer{store}, 2)), 1)
}

// Nobody looks after it: there are no terms that are refreshed.
func TestARecordThatWasLeftBehindFadesAlthoughOthersAreCreated(t *testing.T) {
	const ttl = 2 * time.Second
	for what, pause := range map[string]time.Duration{"often": ttl / 10, "now and then": ttl * 9 / 10} {
		t.Run(what, func(t *testing.T) {
			t.Parallel() // mostly it waits
			store := open(t, nil, testenv.Etcd(t))
			left := shortLived(t, sharer{store}, ttl, 1)[0]
			life, err := store.Lifetime(ttl)
			require.NoError(t, err)
			for began := time.Now(); ; time.Sleep(pause) {
				if _, err := store.Get(within(t, patience), left.Name); err != nil {
					require.ErrorIs(t, err, kv.ErrVacant)
					break
				}
				require.Less(t, time.Since(began), 3*life.Max+patience)
				b := beats(ttl)
				other := shortLived(t, sharer{store}, ttl, 1)[0]
				if err := store.Delete(within(t, patience), other.Name, other.Record); !b.late() {
					require.NoError(t, err)
				}
			}
		})
	}
}

// Etcd answers nothing about it until it has revoked it.
func TestALeaseThatHasJustExpiredKeepsNobodyFromCreating(t *testing.T) {
	const ttl = 2 * time.Second
	for _, pause := range []time.Duration{ttl * 7 / 10, ttl * 19 / 20, ttl + 50*time.Millisecond, ttl + 300*time.Millisecond} {
		t.Run(pause.String(), func(t *testing.T) {
			t.Parallel() // mostly it waits
			store := open(t, nil, testenv.Etcd(t))
			b := beats(ttl)
			first := shortLived(t, sharer{store}, ttl, 1)[0]
			if err := store.Delete(within(t, patience), first.Name, first.Record); !b.late() {
				require.NoError(t, err)
			}
			time.Sleep(pause)
			b = beats(ttl)
			next := shortLived(t, sharer{store}, ttl, 1)[0]
			if got, err := store.Get(within(t, patience), next.Name); !b.late() {
				require.NoError(t, err)
				require.Equal(t, next.Record, got)
			}
		})
	}
}

// As they are after an outage.
func TestManyLeasesThatAreOverKeepNobodyFromCreating(t *testing.T) {
	store, client := open(t, nil, testenv.Etcd(t)), dial(t, nil, testenv.Etcd(t))
	records := heldMany(t, sharer{store}, 501)
	for _, r := range records {
		require.NoError(t, store.Delete(within(t, patience), r.Name, r.Record))
	}
	over := leasesOf(records)
	require.Len(t, over, 2)
	for lease := range over {
		_, err := client.Revoke(within(t, patience), leaseOf(t, kv.Record{Lease: lease}))
		require.NoError(t, err)
	}
	_, rec := held(t, sharer{store})
	require.NotContains(t, over, rec.Lease)
}

// The first create has it from the server. The second one waits for it, and counts its own TTL from
// a keep-alive, which is denied.
func TestALeaseThatWasWaitedForIsKeptAliveBeforeARecordHasIt(t *testing.T) {
	store, w := wiredTo(t, layout{}, testenv.Etcd(t))
	asked, granting := make(chan bool), make(chan bool)
	w.granting = func(context.Context) error {
		w.granting = nil
		close(asked)
		<-granting
		return nil
	}
	w.answered = func(_ context.Context, _ int, resp *pb.LeaseKeepAliveResponse) (bool, error) {
		resp.TTL = 0
		return true, nil
	}
	leases := make(chan string, 2)
	create := func() {
		draft := signed("v")
		rec, err := sharer{store}.Create(within(t, patience), draft.Signature, draft)
		if err != nil {
			t.Error(err)
		}
		leases <- rec.Lease
	}
	var both sync.WaitGroup
	both.Go(create)
	<-asked
	both.Go(create)
	time.Sleep(time.Second) // or it comes later, and finds the lease, which is to be kept alive by then
	close(granting)
	both.Wait()
	first, second := <-leases, <-leases
	require.NotEqual(t, first, second)
}

func TestAKeepAliveThatHangsKeepsNobodyFromCreating(t *testing.T) {
	store, w := wiredTo(t, layout{}, testenv.Etcd(t))
	name, first := held(t, sharer{store})
	require.NoError(t, store.Delete(within(t, patience), name, first))
	w.answered = func(ctx context.Context, _ int, _ *pb.LeaseKeepAliveResponse) (bool, error) {
		<-ctx.Done()
		return false, ctx.Err()
	}
	time.Sleep(time.Second) // till it has to be kept alive
	began := time.Now()
	_, rec := held(t, sharer{store})
	require.Less(t, time.Since(began), patience/2)
	require.NotEqual(t, first.Lease, rec.Lease)
}

// It has written nothing, and the neighbours have done nothing.
func TestACreateThatTheServerRejectsClosesItsLeaseOnlyIfItMayHaveWritten(t *testing.T) {
	store, w := wiredTo(t, layout{}, testenv.Etcd(t))
	_, beside := held(t, sharer{store})
	for rejected, closes := range map[error]bool{
		rpctypes.ErrGRPCPermissionDenied: false,
		rpctypes.ErrGRPCTooManyOps:       false,
		rpctypes.ErrGRPCNoSpace:          true, // it says so too of a write that it has carried out
	} {
		w.sent = func(*pb.TxnRequest) error { return rejected }
		draft := signed("v")
		_, err := sharer{store}.Create(within(t, patience), draft.Signature, draft)
		requireOpen(t, "create", err)
		w.sent = nil
		_, next := held(t, sharer{store})
		require.Equal(t, closes, beside.Lease != next.Lease, "%v", rejected)
		beside = next
	}
}

// It takes fewer conditions in a Txn than others do, so all are refreshed singly.
func TestRecordsLeaveAClosedLeaseOneByOneIfTheyCannotTogether(t *testing.T) {
	const ttl = 4 * time.Second
	store, w := wiredTo(t, layout{}, testenv.Etcd(t))
	records := shortLived(t, sharer{store}, ttl, 5)
	require.Len(t, leasesOf(records), 1)
	closed := records[0].Record.Lease
	w.sent = func(req *pb.TxnRequest) error {
		if len(req.Compare) > 2 {
			return rpctypes.ErrGRPCTooManyOps
		}
		return nil
	}
	w.answer = func(_ *pb.TxnRequest, _ func() error) error {
		w.answer = nil
		return rpctypes.ErrGRPCTimeout
	}
	draft := signed("lost")
	draft.TTL = ttl
	_, err := sharer{store}.Create(within(t, patience), draft.Signature, draft)
	requireOpen(t, "create", err)
	for range 3 { // a lease, and those that move to it
		records = refreshAll(t, store, records)
	}
	require.NotContains(t, leasesOf(records), closed)
	stands(t, store, records...)
	for _, r := range records {
		now, err := store.Get(within(t, patience), r.Name)
		require.NoError(t, err)
		require.Equal(t, ttl, now.TTL, "it was written anew with a lease that has all of its TTL")
	}
}

// A record gets a longer text once it is known with its token.
func TestARecordThatIsTooLongToMoveSharesNoLease(t *testing.T) {
	store := open(t, nil, testenv.Etcd(t))
	_, beside := held(t, sharer{store})
	for long := 1 << 20; ; long-- {
		draft := signed(strings.Repeat("v", long))
		rec, err := store.Create(within(t, patience), draft.Signature, draft)
		if errors.Is(err, kv.ErrInvalid) {
			continue
		}
		require.NoError(t, err)
		require.NoError(t, store.Delete(within(t, patience), draft.Signature, rec))
		rec, err = sharer{store}.Create(within(t, patience), draft.Signature, draft)
		require.NoError(t, err)
		require.NotEqual(t, beside.Lease, rec.Lease)
		require.NoError(t, store.Delete(within(t, patience), draft.Signature, rec))
		return
	}
}
