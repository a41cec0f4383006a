// Package kv is the one small interface between the election engine and a store.
//
// A [Store] holds safes, one per name. A safe is vacant or holds one [Record], with the
// signature of the candidate that leads. A record expires once its time to live has
// passed since its owner last refreshed it.
//
//	           create                       refresh
//	        ┌──────────▶ ┌────────────────┐ ──────┐
//	vacant  │            │ record         │       │
//	        ◀──────────┘ │ signature,     │ ◀─────┘
//	delete, or the TTL   │ token, value   │ ──────┐ swap: another value,
//	has passed           └────────────────┘ ◀─────┘ or another signature
//
// The package holds no policy. What to do about a lost reply, when to try again and how
// long to trust a lease are questions for the engine (package election). An adapter maps
// each operation to one atomic primitive of its store. Its only state that could not be read
// back from the store is about leases: those that it holds in reserve, and those that records
// of its process share. It never closes the client that it was given.
//
// # Wrappers
//
// The type of a store tells what it can do beyond a Store: it may be a [Queue], a [HandOver], a
// [Vacate], a [Batch], a [Board], a [Roster]. A struct that embeds a Store hides all of that. To
// keep it, embed the type of the store that is wrapped:
//
//	type counting struct {
//		*etcdkv.Store // not kv.Store
//		creates atomic.Int64
//	}
//
// Some methods are variants of the same operation: Create and Join; Refresh, RefreshAll and Stay;
// Swap and HandOver; Delete and Vacate; Watch and Follow. A wrapper that changes one of them
// may have to change the others.
//
// Hiding a HandOver, a Vacate, a Batch or a Board costs only speed. Hiding a Roster turns off
// what needs one (Options.Roster of package election). Hiding a Queue would leave candidates
// outside the line, where they are not elected while others wait in it.
// Package election refuses such a wrapper, by [Lifetime].Queue.
package kv

import (
	"context"
	"errors"
	"iter"
	"time"
)

// A Record is what a safe holds.
//
// A record is identified by its Signature and Token together: a create that was
// delayed in the network may bring an old signature in again, but never under
// the same token. Records can be compared with ==.
type Record struct {
	// Signature says who wrote the record. It is any valid UTF-8, opaque to the
	// store, and new for each campaign. Empty in a foreign record.
	Signature string

	// Value is what the owner publishes: any bytes. In a foreign record it is what
	// the writer put there.
	Value string

	// Note is what candidates tell each other beside the value: valid UTF-8,
	// published with the value and changed with it, and opaque to the store. Clients of
	// old locks, which read plain values, never see it. Empty in a foreign
	// record.
	Note string

	// Token orders the signatures of one safe: each new signature gets a larger
	// token than every earlier one, across deletes, expiries and restarts. It
	// stays the same as long as the signature does. Zero in a foreign record
	// for which the store knows no order.
	Token uint64

	// Revision changes with each change of the record. Two equal revisions of a
	// safe mean that nothing changed in between; their order means nothing.
	Revision uint64

	// TTL is how long the record lives, counted from the start of the call that
	// last wrote or refreshed it, as granted by the store. Zero if unknown, as
	// it may be for foreign records.
	TTL time.Duration

	// Lease is the store's own handle of what keeps the record alive (an etcd
	// lease, a Consul session). It is empty if the record keeps itself alive. Only
	// the adapter reads it; a caller passes it back as it came. Several records
	// may share a lease.
	Lease string

	// Lasting asks Create for a record that only its TTL ends. It lives for its
	// TTL whatever happens to the process that wrote it, and after Lifetime.Max it has
	// expired for every client, even for one that has never read the safe before: as nobody
	// refreshes it, a client may first see it after that. It is never set in a record that
	// a store returns.
	Lasting bool

	// Shared lets Create back the record by a lease that also backs other records of this
	// process, as [Held].Share lets [Batch].RefreshAll; the rules there apply from the start. If
	// the lease was kept alive before the call, the granted TTL is what is left of the lease,
	// which may be shorter than Lifetime.Min by up to an eighth of the TTL and a second. The TTL
	// in the record in the safe is that shorter one. A refresh grants the full TTL. Shared is
	// never set in a record that a store returns.
	Shared bool

	// Foreign is set if this library did not write the record, or if a later version of it
	// did, in a format that this one does not know. It is another program's lock.
	Foreign bool

	// Permanent is set if the record has no expiry at all: it stays until it
	// is removed.
	Permanent bool
}

// Owns reports whether r and other are the same period of ownership: the same
// signature under the same token. A foreign record owns nothing.
func (r Record) Owns(other Record) bool {
	return !r.Foreign && !other.Foreign && r.Signature != "" &&
		r.Signature == other.Signature && r.Token == other.Token
}

// A Lifetime says how long a record lives after its owner has stopped refreshing
// it, counted from the start of the last write or refresh.
type Lifetime struct {
	// Min is the shortest time: what a store grants for the TTL that was asked for,
	// and at least that TTL.
	Min time.Duration
	// Max is the longest time until the store lets another in, as long as the
	// store itself is healthy. A Consul session lasts up to twice its TTL.
	Max time.Duration
	// Queue is set if candidates wait in line for the store's safes: the store is a [Queue],
	// and what wraps it has to be one too. A candidate beside a line is not elected while
	// others wait in it.
	Queue bool
}

// The definite outcomes. They are matched with errors.Is; a store may wrap them
// to say more. After any other error of a writing operation, including the error of its
// own context, the write may or may not have happened, and may still happen later.
var (
	// ErrVacant means that the safe holds no live record.
	ErrVacant = errors.New("kv: the safe is vacant")

	// ErrHeld means that a create was refused and had no effect: the safe holds
	// a live record, perhaps a foreign one, or the store keeps the safe closed
	// for a while after its last owner.
	ErrHeld = errors.New("kv: the safe is held")

	// ErrStale means that a swap, refresh or delete was refused and had no
	// effect: the record (or, in a hand-over, the lease of the next one) is no
	// longer as the caller saw it.
	ErrStale = errors.New("kv: the record is not the one given")

	// ErrInvalid means that the store can never do what was asked: it does not take
	// the name, the TTL or the value, or the record is foreign where the caller's own is
	// needed. Nothing happened, and trying again is futile. The error's text
	// says what would be right.
	ErrInvalid = errors.New("kv: invalid request")
)

// A Store is a set of safes. Any number of goroutines may use it at the same time, and
// any number of safes share its client, its leases and its connections.
//
// Rules for every operation:
//
//   - It is one atomic step of the store. Its condition and its write cannot be
//     separated by another client's write.
//   - Its context bounds it: when the context ends it returns promptly, with an
//     error for which errors.Is reports the context's error or cause, and leaves
//     no goroutine behind.
//   - It does not try again by itself in a way that could carry out a write
//     twice with different effects.
//   - Reads are linearizable: they show every write that returned before the
//     read began.
//   - Names are any non-empty strings. A name is kept apart from every other
//     name, or refused with ErrInvalid.
//   - Live means: less than the TTL has passed since the start of the call that
//     last wrote or refreshed the record. A record is never treated as expired
//     before that; it may live longer, up to Lifetime.Max.
//   - A foreign record is reported, and is never changed, refreshed or deleted.
//   - No error contains credentials.
type Store interface {
	// Create puts a record into a vacant safe. Of rec it uses the Signature,
	// Value, Note, TTL, Lasting and Shared. It returns the record as it stands in the safe,
	// with a token larger than that of every earlier record of the safe.
	//
	// It returns ErrHeld if a live record is there (even the caller's own), and
	// ErrInvalid if this store does not take the name, value or TTL, or if its
	// records cannot be Lasting.
	Create(ctx context.Context, name string, rec Record) (Record, error)

	// Swap replaces old by next if the safe still holds old at old.Revision.
	// It returns next as it stands in the safe.
	//
	// With old's signature in next, it publishes next.Value and next.Note and ignores
	// everything else in next: token, lease and TTL stay, and the record's life is
	// at least not shortened. A publication is not a refresh: do not count on a longer
	// life.
	//
	// With another signature in next, it hands the safe over: the record gets a
	// new, larger token and its full TTL from the start of the call. If
	// next.Lease is set (next was read from this store: the heir's own record in
	// another safe), that lease backs the record from now on, and the call keeps
	// it alive for that TTL, however long ago the heir last refreshed its own
	// record. If not, the adapter obtains one as Create does.
	//
	// It returns ErrStale if the safe holds anything else, or nothing, or if
	// next.Lease is gone, and ErrInvalid if that is the lease that backs old.
	Swap(ctx context.Context, name string, old, next Record) (Record, error)

	// Refresh restarts the TTL of the caller's record and returns the record
	// as it stands in the safe. Except for Held.Share, it changes neither value nor token nor
	// revision: no caller sees it, whether the store or the candidates judge expiry.
	//
	// Success proves that the safe held rec's signature and token during the
	// call: renewing a lease or session is no such proof, so Refresh reads the key
	// itself. The TTL in the returned record is what this refresh granted,
	// counted from the start of this call.
	//
	// It returns ErrStale if the safe does not hold rec. It never brings a
	// record back.
	Refresh(ctx context.Context, name string, rec Record) (Record, error)

	// Delete empties the safe if it holds rec's signature and token. It frees what
	// backed the record, or lets it expire, unless other records share it. It
	// returns ErrStale if the safe does not hold rec.
	Delete(ctx context.Context, name string, rec Record) error

	// Get returns the safe's record, or ErrVacant.
	Get(ctx context.Context, name string) (Record, error)

	// Watch yields the state of the safe: first the present one, then the state
	// after each change, merged if the reader is slow. A vacant safe is yielded
	// as ErrVacant with a zero Record, and the sequence goes on. Every other
	// error is the last thing it yields; when ctx ends, that error is ctx's
	// error or cause.
	//
	// After an expiry it always yields the vacancy sooner or later, without any other
	// client's help. A refresh is not a change. Changes that cancel each other out (a
	// record that came and went) may go unreported.
	//
	// Waiting is cheap: where the store can push, an unchanged safe costs no
	// requests except a rare read as a backstop. Where it cannot, it costs few. It never
	// spins, whatever is in the safe. Everything that it started ends with the loop.
	Watch(ctx context.Context, name string) iter.Seq2[Record, error]

	// Lifetime says how long records with this ttl live. It sends no requests. A wrapper
	// returns what the wrapped store returns. Lifetime returns ErrInvalid if the store
	// cannot honour ttl.
	Lifetime(ttl time.Duration) (Lifetime, error)
}
