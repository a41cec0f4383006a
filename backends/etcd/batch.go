package etcdkv

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/electkv/election/internal/gate"
	"github.com/electkv/election/kv"
)

const (
	// txnOps is how many conditions a server takes in a Txn by default, and how many
	// operations in each of its branches.
	txnOps = 128

	// manyAtOnce bounds how many shares of a batch are under way, and how many records that
	// are refreshed singly.
	manyAtOnce = 16

	// fewAtOnce bounds what keeps a server busy for longer: Txns, and in each share
	// keep-alives that have no stream in common.
	fewAtOnce = 4

	// long is how long something may take before it holds up nothing else any more.
	long = 100 * time.Millisecond
)

// A batch is one call of RefreshAll.
type batch struct {
	*Store
	records []kv.Held
	tell    func(i int, rec kv.Record, err error)
	shares  *gate.Gate
	txns    *gate.Gate
	singles *gate.Gate
	all     sync.WaitGroup
	common  map[clientv3.LeaseID]*renewal // of leases that several shares have
	lacking []time.Duration               // TTLs for which no lease takes more records
	leaving bool                          // it is there to have a record leave its lease
}

// A claim is a record of a batch of which its revision and its lease prove everything: no
// two writes have a revision in common, and each has its lease.
type claim struct {
	safe
	kv.Record
	i  int // in the batch
	id clientv3.LeaseID
	move
}

func (s *Store) refreshAll(ctx context.Context, records []kv.Held, leaving bool, tell func(i int, rec kv.Record, err error)) {
	b := &batch{
		Store: s, records: records, tell: tell, leaving: leaving,
		shares: gate.Yielding(manyAtOnce, long), txns: gate.Yielding(fewAtOnce, long), singles: gate.Yielding(manyAtOnce, long),
	}
	now := time.Now()
	claims := make([]claim, 0, len(records))
	for i := range records {
		c, ok := b.claim(i)
		if ok && c.shares() {
			ok = b.place(&c, records[i].Share, now)
		}
		if ok {
			claims = append(claims, c)
		} else {
			b.single(ctx, i)
		}
	}
	shares := sharesOf(claims)
	b.renewCommon(ctx, shares)
	for _, share := range shares {
		b.all.Go(func() { b.shares.Do(ctx, func() { b.refresh(ctx, share) }) })
	}
	b.all.Go(func() { s.tend(ctx, now, b.lacking) })
	b.all.Wait()
}

// claim returns what is claimed of a record, unless more has to be looked at than a
// revision: without one, a key that is missing would be proof, and in a line others count.
func (b *batch) claim(i int) (claim, bool) {
	rec := b.records[i].Record
	sf, invalid := b.safe(b.records[i].Name)
	id, err := leaseID(rec.Lease)
	ok := invalid == nil && err == nil && id != clientv3.NoLease &&
		checkOwn(rec) == nil && rec.Revision != 0 && !sf.lined()
	return claim{safe: sf, Record: rec, i: i, id: id}, ok
}

// single refreshes one record by itself.
func (b *batch) single(ctx context.Context, i int) {
	b.all.Go(func() {
		held := b.records[i]
		var rec kv.Record
		var err error
		b.singles.Do(ctx, func() {
			var sf safe
			if sf, err = b.open(ctx, held.Name); err == nil {
				rec, err = sf.refresh(ctx, held.Record)
			}
		})
		if err == nil && !b.leaving {
			rec = b.left(ctx, held.Name, rec)
		}
		rec, err = outcome(ctx, "refresh", held.Name, rec, err)
		b.tell(i, rec, err)
	})
}

// refresh refreshes a share of the batch.
func (b *batch) refresh(ctx context.Context, share []claim) {
	granted, err := b.renew(ctx, share)
	alive := share[:0]
	for _, c := range share {
		proved := granted[c.id] > 0
		if c.moves() && granted[c.to] == 0 {
			proved = proved && !c.again // it may come to depend on the other lease
			to := leaseName(c.to)
			b.keep(&c)
			b.sharing.doubt(to)
		}
		if proved {
			alive = append(alive, c)
		} else {
			b.keep(&c)
			b.unproved(ctx, c, err)
		}
	}
	if len(alive) == 0 {
		return
	}
	held, err := b.held(ctx, alive)
	for i, c := range alive {
		if err == nil && held[i] {
			c.TTL = granted[c.id]
			if c.moves() {
				c.TTL = min(c.TTL, granted[c.to])
			}
			b.board.Holds(b.records[c.i].Name, c.Record, jitter(b.opts.Backstop))
			b.tell(c.i, c.Record, nil)
		} else {
			b.unproved(ctx, c, err)
		}
	}
}

// unproved leaves the outcome for a record open if what was asked for several has failed.
// If there was an answer, or the error is about another record, it is refreshed singly.
func (b *batch) unproved(ctx context.Context, c claim, err error) {
	if err == nil || refused(err) {
		b.single(ctx, c.i)
		return
	}
	_, err = outcome(ctx, "refresh", b.records[c.i].Name, kv.Record{}, err)
	b.tell(c.i, kv.Record{}, err)
}

// held reports of each claim whether it holds: by one Txn if all do, or else by a second
// one that reads which. Where all do, the Txn moves those that are to move. Where one does
// not, none has moved, unless the client has sent the Txn twice and the first one was carried
// out: then their revisions are others, and they are refreshed singly.
//
// The reads of the first are there to be waited for. A member that is cut off answers a Txn
// that has no read, or only serializable ones, by what it has, however old that is.
func (b *batch) held(ctx context.Context, claims []claim) ([]bool, error) {
	leave, _ := b.txns.Enter(ctx)
	defer leave()
	conditions, of := make([]clientv3.Cmp, 0, txnOps), make([]int, 0, txnOps)
	for i, c := range claims {
		for _, one := range c.holds(c.Record) {
			conditions, of = append(conditions, one), append(of, i)
		}
	}
	look := lookAt(conditions[0])
	moves, err := movesOf(claims)
	if err != nil {
		return nil, err
	}
	held := slices.Repeat([]bool{true}, len(claims))
	resp, err := b.client.Txn(ctx).If(conditions...).Then(append(moves, look)...).Else(look).Commit()
	switch {
	case err == nil && resp.Succeeded:
		b.moved(claims, resp.Header.Revision)
		return held, nil
	case err == nil:
	case len(moves) > 0 && refused(err) && !errors.Is(err, rpctypes.ErrLeaseNotFound):
		b.sharing.refuse(time.Now(), errors.Is(err, rpctypes.ErrNoSpace))
		for i := range claims {
			if errors.Is(err, rpctypes.ErrTooManyOps) || errors.Is(err, rpctypes.ErrRequestTooLarge) { // whenever it is sent
				b.keep(&claims[i])
			}
		}
		return nil, err
	default:
		return nil, err
	}
	looks := make([]clientv3.Op, len(conditions))
	for i, c := range conditions {
		looks[i] = lookAt(c)
	}
	if resp, err = b.client.Txn(ctx).Then(looks...).Commit(); err != nil {
		return nil, err
	}
	for i, look := range resp.Responses {
		at := look.GetResponseRange().Kvs
		if len(at) != 1 || uint64(at[0].ModRevision) != claims[of[i]].Revision {
			held[of[i]] = false
		}
	}
	for i := range claims {
		if held[i] {
			b.keep(&claims[i])
		}
	}
	return held, nil
}

// lookAt reads whether the key is there that a condition is about, and its ModRevision.
func lookAt(c clientv3.Cmp) clientv3.Op {
	return clientv3.OpGet(string(c.KeyBytes()), clientv3.WithKeysOnly())
}

// refused reports whether the error is about what was asked: a key or lease that the user
// may not use, a lease that has ended, too many of them, too long ones, or a write where the
// server takes no more. Each by itself may be all right.
func refused(err error) bool {
	code := status.Code(err)
	if told, ok := errors.AsType[rpctypes.EtcdError](err); ok {
		code = told.Code()
	}
	switch code {
	case codes.InvalidArgument, codes.PermissionDenied, codes.ResourceExhausted, codes.NotFound:
		return true
	}
	return false
}
