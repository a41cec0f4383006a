package consulkv

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/gate"
	"github.com/electkv/election/kv"
)

const (
	// txnsAtOnce and renewalsAtOnce bound what a batch has under way.
	txnsAtOnce, renewalsAtOnce = 4, 16
)

// A batch is one call of RefreshAll.
type batch struct {
	*Store
	records  []kv.Held
	tell     func(i int, rec kv.Record, err error)
	txns     *gate.Gate
	renewals *gate.Gate
	all      sync.WaitGroup

	mu      sync.Mutex
	renewed map[string]*renewing // by session
}

// A claim is a record of a batch of which the index of its key proves everything: no other
// write of the key has it, and the end of a session is a write.
type claim struct {
	kv.Record
	i     int // in the batch
	key   string
	has   version
	asked time.Time // before the request that has proved it
}

// A renewing is the renewal of a session in a batch.
type renewing struct {
	once sync.Once
	ttl  time.Duration
	err  error
}

// RefreshAll implements [kv.Batch]: for up to 128 records at a time, with Options.Plain 64, one
// consistent read-only Txn. It proves that their keys still have the ModifyIndexes with which
// this package has seen or written the records, so each is there, and locked by its session. Then
// the sessions are renewed, each once. What a Txn refuses is left out of the next one,
// and refreshed by itself as by Refresh: records that have changed or are gone, and those whose
// revision is a number in their text and whose index was not seen yet.
//
// If a Txn or a renewal fails, the outcome is open for those of its records that have no answer.
//
// Held.Share changes nothing: a record keeps the session that it was created with.
func (s *Store) RefreshAll(ctx context.Context, records []kv.Held, tell func(i int, rec kv.Record, err error)) {
	var own, members []int
	for i, held := range records {
		if s.of(held.Name) == s {
			own = append(own, i)
		} else {
			members = append(members, i)
		}
	}
	if len(members) == 0 {
		s.refreshAll(ctx, records, tell)
		return
	}
	some := func(of *Store, which []int) {
		held := make([]kv.Held, len(which))
		for j, i := range which {
			held[j] = records[i]
		}
		of.refreshAll(ctx, held, func(j int, rec kv.Record, err error) { tell(which[j], rec, err) })
	}
	var both sync.WaitGroup
	both.Go(func() { some(s.members, members) })
	if len(own) > 0 {
		some(s, own)
	}
	both.Wait()
}

func (s *Store) refreshAll(ctx context.Context, records []kv.Held, tell func(i int, rec kv.Record, err error)) {
	b := &batch{
		Store: s, records: records, tell: tell, renewed: make(map[string]*renewing),
		txns: gate.Yielding(txnsAtOnce, long), renewals: gate.Yielding(renewalsAtOnce, long),
	}
	claims := make([]claim, 0, len(records))
	var rest []int
	for i := range records {
		if c, ok := b.claim(ctx, i); ok {
			claims = append(claims, c)
		} else {
			rest = append(rest, i)
		}
	}
	slices.SortStableFunc(claims, func(a, b claim) int { return cmp.Compare(a.Lease, b.Lease) })
	each := 1
	if b.opts.Plain {
		each = 2 // it has a companion
	}
	for share := range txnsOf(claims, each, func(c claim) string { return c.key }) {
		b.all.Go(func() { b.refresh(ctx, share) })
	}
	b.all.Go(func() { b.singles(ctx, rest) })
	b.all.Go(func() { s.tend(ctx, aside) })
	b.all.Wait()
}

// claim returns what is claimed of a record, unless more has to be looked at than an index.
func (b *batch) claim(ctx context.Context, i int) (claim, bool) {
	rec := b.records[i].Record
	key, err := b.open(ctx, b.records[i].Name)
	if err != nil || checkOwn(rec) != nil || rec.Revision == 0 || rec.Lease == "" {
		return claim{}, false
	}
	if stands := b.sharing.asks(rec.Lease, key, rec.Signature, boottime.Read()); stands == late || stands == ended {
		return claim{}, false
	}
	has := version{key: b.seen.index(key, rec)}
	if b.opts.Plain {
		has.companion = has.key // one Txn has written both
	}
	return claim{Record: rec, i: i, key: key, has: has}, true
}

// refresh refreshes a share of the batch. Renewals come after a consistent read: should the
// leader that renews be one that does not know yet that it was replaced, its successor came
// after the read, and has started all sessions anew.
func (b *batch) refresh(ctx context.Context, share []claim) {
	held, rest, err := b.prove(ctx, share)
	if err != nil {
		b.fail(ctx, held, err)
		held = nil
	}
	for len(held) > 0 {
		n := 1
		for n < len(held) && held[n].Lease == held[0].Lease {
			n++
		}
		some := held[:n]
		held = held[n:]
		leave, _ := b.renewals.Enter(ctx)
		b.all.Go(func() {
			defer leave()
			b.keepAlive(ctx, some)
		})
	}
	b.singles(ctx, rest)
}

// prove returns those of the claims that hold, and which records are to be refreshed singly. If
// there is an error, of the former nothing is known.
func (b *batch) prove(ctx context.Context, claims []claim) (held []claim, rest []int, _ error) {
	leave, _ := b.txns.Enter(ctx)
	defer leave()
	for range refusalsOfTxn {
		if len(claims) == 0 {
			return nil, rest, nil
		}
		var ops []*api.KVTxnOp
		for _, c := range claims {
			ops = append(ops, b.unchanged(c.key, entry{version: c.has})...)
		}
		asked := time.Now()
		found, err := b.transact(ctx, ops, &api.QueryOptions{RequireConsistent: true})
		no, refusing := errors.AsType[*refusal](err)
		if err != nil && !refusing {
			return claims, rest, err
		}
		each := len(ops) / len(claims)
		kept := func(i int) bool { return locks(found, i*each, ops[i*each:(i+1)*each], claims[i].Lease) }
		if refusing { // of the others it proves nothing: they may not have been looked at
			refused := no.ops()
			kept = func(i int) bool { return !refused[i*each] && !refused[i*each+each-1] }
		}
		var others []claim
		for i, c := range claims {
			if c.asked = asked; kept(i) {
				others = append(others, c)
			} else {
				rest = append(rest, c.i)
			}
		}
		if claims = others; !refusing {
			return claims, rest, nil
		}
	}
	for _, c := range claims {
		rest = append(rest, c.i)
	}
	return nil, rest, nil
}

// locks reports whether what a Txn has found from a place on is what the conditions are about,
// locked by the session. An index alone would be no proof where a snapshot of another
// cluster was restored.
func locks(found api.KVPairs, from int, conditions []*api.KVTxnOp, session string) bool {
	for i, op := range conditions {
		if from+i >= len(found) {
			return false
		}
		pair := found[from+i]
		if pair.Key != op.Key || pair.ModifyIndex != op.Index || pair.Session != session || pair.Flags != api.LockFlagValue {
			return false
		}
	}
	return true
}

// keepAlive renews the session that some records have in common, and tells of each.
func (b *batch) keepAlive(ctx context.Context, some []claim) {
	session := some[0].Lease
	b.mu.Lock()
	r := b.renewed[session]
	if r == nil {
		r = new(renewing)
		b.renewed[session] = r
	}
	b.mu.Unlock()
	r.once.Do(func() {
		var got renewal
		got, r.err = b.renewShared(ctx, session)
		r.ttl = got.ttl
	})
	switch {
	case errors.Is(r.err, kv.ErrStale):
		for _, c := range some {
			b.singles(ctx, []int{c.i})
		}
		return
	case r.err != nil:
		b.fail(ctx, some, r.err)
		return
	}
	for _, c := range some {
		if !b.sharing.keeps(session, c.key, c.Signature) {
			b.fail(ctx, []claim{c}, b.sharing.whyEnded(session))
			continue
		}
		c.TTL = r.ttl
		b.confirm(c.key, c.has, c.asked)
		b.tell(c.i, c.Record, nil)
	}
}

// fail leaves the outcome open.
func (b *batch) fail(ctx context.Context, claims []claim, why error) {
	for _, c := range claims {
		_, err := outcome(ctx, "refresh", b.records[c.i].Name, kv.Record{}, why)
		b.tell(c.i, kv.Record{}, err)
	}
}

// singles refreshes records by themselves.
func (b *batch) singles(ctx context.Context, which []int) {
	for _, i := range which {
		leave, _ := b.renewals.Enter(ctx)
		b.all.Go(func() {
			defer leave()
			rec, err := b.refreshOne(ctx, b.records[i].Name, b.records[i].Record)
			b.tell(i, rec, err)
		})
	}
}
