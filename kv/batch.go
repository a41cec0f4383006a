package kv

import "context"

// A Held is a record and the name of the safe that its owner believes to hold it.
type Held struct {
	Name   string
	Record Record

	// Share lets the store back the record by a lease that also backs other records of this
	// process. Then the record that RefreshAll reports has another Lease and Revision than
	// before. All else stays as it was, and the TTL is no shorter. A call that fails may have
	// the same effect, and so may any later refresh of the record. A caller that has the earlier
	// record can still refresh and delete it. From then on, send all calls for the record to
	// this store, because no other knows of the lease, and do not let two refreshes of it
	// overlap. Do not set Share for an heir's record: a hand-over would put the leader's record
	// on the shared lease.
	//
	// Such a record expires when its process has ended, like any other. If its owner neither
	// refreshes nor deletes it, while other records of the process are refreshed, it may live
	// for up to three times Lifetime.Max.
	Share bool
}

// A Batch is a [Store] that refreshes many records at once. Where it can, it sends fewer
// requests than one per record. It never sends more.
type Batch interface {
	Store

	// RefreshAll does for each of the records what [Store.Refresh] does, and reports what
	// Refresh would return for it, except for Held.Share. Each record has a result of its own:
	// neither the success nor the failure of one says anything about another, and they are
	// reported in no particular order. The records are of different safes, and as this store
	// has returned them.
	//
	// It calls tell once for each record, with its index, as soon as its result is known, and
	// returns after the last of these calls. They may come from several goroutines at
	// once, so tell must not block. A record that takes long delays only records that
	// are in the same request.
	//
	// When ctx ends, it reports for each record without a result an error that
	// reports the context's error or cause, and returns promptly. As after Refresh, the
	// store may still carry out what was sent.
	RefreshAll(ctx context.Context, records []Held, tell func(i int, rec Record, err error))
}
