package kv

import "context"

// A Queue is a [Store] in which candidates can wait in line for a safe, as
// the clients of some locks do. While such a lock's own clients wait, a candidate
// outside their line would never find the safe vacant.
//
// A line is a sequence of records. The first is what the safe holds. The others
// are places, which only their owners know of: Get and Watch show only the first.
// When the first goes, the next one is in the safe at that instant, without
// any request. Tokens grow along the line.
//
// A place is a record like any other, with a TTL of its own: if its owner does
// not call Stay in time, it leaves the line. Delete removes a place from the line just
// as it empties the safe, whether rec is first or not. Refresh and Swap are only for
// the first in line, and return [ErrStale] for any other.
//
// For Create, a safe is vacant if its line is empty. A hand-over would jump the line if
// others wait in it: then Swap returns [ErrStale], if next has another
// signature.
type Queue interface {
	Store

	// Join puts rec at the end of the line, and returns it as it stands there.
	// Of rec it uses the Signature, Value, Note and TTL, as Create does. Its token is
	// the one with which it will lead. Stay and Watch show whether it is already
	// first.
	//
	// If the signature is already in line (the answer to an earlier Join was
	// lost), Join returns that place as it stands. It does not restart its TTL.
	//
	// It returns [ErrInvalid] as Create does. Then nothing happened.
	Join(ctx context.Context, name string, rec Record) (Record, error)

	// Stay restarts the TTL of a place, counted from the start of this call,
	// and returns the place as it stands. Leads reports whether it is first in line.
	// Then the safe holds it, and the call is as good as a Refresh.
	//
	// It returns [ErrStale] if rec's signature and token are not in line.
	Stay(ctx context.Context, name string, rec Record) (place Record, leads bool, err error)
}
