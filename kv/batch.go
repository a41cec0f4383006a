package kv

import "context"

// A Held is a record and the name of the safe that its owner believes to hold it.
type Held struct {
	Name   string
	Record Record

	// Share lets the store back the record by a lease that backs others of this process
	// too. Then what RefreshAll tells has another Lease and Revision than before. All else
	// stays as it was, and the TTL is no shorter. The same may come of a call that fails,
	// and of any later refresh of the record. A caller that has the earlier record can still
	// refresh and delete it. From then on, all calls for the record go to this store, since no
	// other knows of the lease, and no two refreshes of it overlap. Do not set Share for an
	// heir's record: a hand-over would put the leader's record on the shared lease.
	//
	// Such a record fades when its process has ended, as any does. If its owner refreshes it
	// no more and does not delete it, while others of the process are refreshed, it may live
	// for up to three times Lifetime.Max.
	Share bool
}

// A Batch is a [Store] that refreshes many records at once: with fewer requests than one by
// one where it can, and with no more in any case.
type Batch interface {
	Store

	// RefreshAll does for each of the records what [Store.Refresh] does, and tells what
	// Refresh would return for it, but for Held.Share. Each has a verdict of its own: neither the success
	// nor the failure of one says anything of another, and no order among them is
	// promised. The records are of different safes, and as this store has returned them.
	//
	// It calls tell once for each, with its index, as soon as its verdict is known, and
	// returns after the last of these calls. They may come from several goroutines at
	// once, so tell must not block. What takes long for one record delays no other that
	// is not in the same request.
	//
	// When ctx ends, it tells of each record that has no verdict yet an error that
	// reports the context's error or cause, and returns promptly. As after Refresh, what
	// is on its way may still be carried out.
	RefreshAll(ctx context.Context, records []Held, tell func(i int, rec Record, err error))
}
