package etcdkv_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// countKeepAlives counts the keep-alives that are answered.
func (w *wire) countKeepAlives() (n *int) {
	n = new(int)
	w.answered = func(context.Context, int, *pb.LeaseKeepAliveResponse) (bool, error) {
		*n++
		return true, nil
	}
	return n
}

// What a record promises that is created with a lease as it is, it promises from the start of
// the call: in the answer, and to those who find it when the answer was lost.
func TestARecordPromisesNoMoreThanItsLeaseHasLeft(t *testing.T) {
	const passes = 400 * time.Millisecond
	for what, lost := range map[string]bool{"answered": false, "and the answer is lost": true} {
		t.Run(what, func(t *testing.T) {
			store, w := wiredTo(t, layout{}, testenv.Etcd(t))
			_, first := held(t, sharer{store}) // its lease was granted before that
			time.Sleep(passes)
			renewals := w.countKeepAlives()
			if lost {
				w.answer = func(_ *pb.TxnRequest, send func() error) error {
					w.answer = nil
					require.NoError(t, send())
					return rpctypes.ErrGRPCTimeout
				}
			}
			draft := signed("v")
			rec, err := sharer{store}.Create(within(t, patience), draft.Signature, draft)
			if lost {
				requireOpen(t, "create", err)
			} else {
				require.NoError(t, err)
			}
			found, err := store.Get(within(t, patience), draft.Signature)
			require.NoError(t, err)
			require.Equal(t, first.Lease, found.Lease)
			if !lost {
				require.Equal(t, rec, found)
			}
			if *renewals == 0 { // else the machine was slow
				require.LessOrEqual(t, found.TTL, first.TTL-passes)
				require.Greater(t, found.TTL, first.TTL-time.Second)
			}
		})
	}
}

func TestALeaseThatWasNotKeptAliveLatelyIsKeptAliveBeforeARecordHasIt(t *testing.T) {
	store, w := wiredTo(t, layout{}, testenv.Etcd(t))
	held(t, sharer{store})
	renewals := w.countKeepAlives()
	time.Sleep(time.Second)
	_, rec := held(t, sharer{store})
	require.Equal(t, 1, *renewals)
	require.Zero(t, rec.TTL%time.Second, "it has all of its lease's TTL")
	other := signed("v")
	other.TTL = 2 * time.Second // which is kept alive for a shorter time
	began := time.Now()
	for range 2 {
		other.Signature = signed("v").Signature
		_, err := sharer{store}.Create(within(t, patience), other.Signature, other)
		require.NoError(t, err)
		time.Sleep(300 * time.Millisecond)
	}
	if time.Since(began) < 3*other.TTL/4 { // else its lease was closed meanwhile, as one that nobody uses
		require.Equal(t, 2, *renewals)
	}
}

// A lock that is taken and released again and again costs two writes, and nothing else.
func TestASafeThatThisStoreHasEmptiedIsTakenWithoutALook(t *testing.T) {
	var sent count
	store := openWith(t, &sent, layout{}, testenv.Etcd(t))
	sharing, name := sharer{store}, signed("").Signature
	proved := time.Now() // the lease is as old as that at most
	rec, err := sharing.Create(within(t, patience), name, signed("v"))
	require.NoError(t, err)
	costs := func(op string, want int64, f func() error) {
		t.Helper()
		before := sent.Load()
		require.NoError(t, f(), op)
		if time.Since(proved) < 900*time.Millisecond { // else it may have had to keep a lease alive
			require.Equal(t, want, sent.Load()-before, op)
		}
	}
	release := func() error { return store.Delete(within(t, patience), name, rec) }
	acquire := func() error {
		rec, err = sharing.Create(within(t, patience), name, signed("v"))
		return err
	}
	costs("delete", 1, release)
	costs("create", 1, acquire)
	proved = time.Now()
	_, err = store.Refresh(within(t, patience), name, rec)
	require.NoError(t, err)
	rec.TTL = rec.TTL.Truncate(time.Second) + time.Second // as the refresh has granted
	costs("delete after a refresh", 1, release)

	other := openWith(t, nil, layout{}, testenv.Etcd(t))
	theirs, err := sharer{other}.Create(within(t, patience), name, signed("theirs"))
	require.NoError(t, err)
	costs("create, refused by its write", 1, func() error {
		require.ErrorIs(t, acquire(), kv.ErrHeld)
		return nil
	})
	costs("create, refused by a read", 1, func() error {
		require.ErrorIs(t, acquire(), kv.ErrHeld)
		return nil
	})
	stands(t, store, kv.Held{Name: name, Record: theirs})
	require.NoError(t, other.Delete(within(t, patience), name, theirs))
	costs("create, after a look", 2, acquire)
	require.ErrorIs(t, acquire(), kv.ErrHeld, "its own, too")
}

// What counts is when a keep-alive was sent that was answered, not when the answer came, nor one
// without an answer.
func TestALeaseIsAsOldAsTheLastKeepAliveThatWasAnswered(t *testing.T) {
	const slow = 500 * time.Millisecond
	store, w := wiredTo(t, layout{}, testenv.Etcd(t))
	w.granting = func(context.Context) error {
		time.Sleep(slow)
		return nil
	}
	first := mayShare(heldMany(t, sharer{store}, 1))
	requireAged := func(what string) {
		t.Helper()
		_, rec := held(t, sharer{store})
		require.Equal(t, first[0].Record.Lease, rec.Lease)
		if rec.TTL%time.Second != 0 { // else the machine was so slow that it was kept alive anew
			require.LessOrEqual(t, rec.TTL, ample-slow, what)
		}
	}
	requireAged("granted")
	w.answered = func(context.Context, int, *pb.LeaseKeepAliveResponse) (bool, error) {
		time.Sleep(slow)
		return true, nil
	}
	for what, renew := range map[string]func() error{
		"by a create": func() error {
			time.Sleep(time.Second)
			held(t, sharer{store})
			return nil
		},
		"in a batch": func() error {
			refreshAll(t, store, first)
			return nil
		},
		"singly": func() error {
			_, err := store.Refresh(within(t, patience), first[0].Name, first[0].Record)
			return err
		},
	} {
		require.NoError(t, renew(), what)
		requireAged(what)
	}

	time.Sleep(time.Second)
	w.answered = func(ctx context.Context, _ int, _ *pb.LeaseKeepAliveResponse) (bool, error) {
		<-ctx.Done()
		return false, ctx.Err()
	}
	lost := signed("v")
	_, err := sharer{store}.Create(within(t, 300*time.Millisecond), lost.Signature, lost)
	requireOpen(t, "create", err)
	renewals := w.countKeepAlives()
	_, rec := held(t, sharer{store})
	require.Equal(t, first[0].Record.Lease, rec.Lease)
	require.NotZero(t, *renewals)
}
