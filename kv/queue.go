package kv

import "context"

// A Queue is a [Store] in which candidates can wait in line before a safe, as
// the clients of some locks do. Where such a lock's own clients wait, a candidate
// that does not stand in their line would never find the safe vacant.
//
// A line is a sequence of records. The first is what the safe holds; the others
// are places, which only their owners know of: Get and Watch tell of the first
// alone. When it goes, the next one is in the safe at that instant, without
// anybody's doing. Tokens grow along the line.
//
// A place is a record like any other, with a TTL of its own: an owner that does
// not say that it stays leaves the line. Delete takes a place from the line just
// as it empties the safe, whether rec is first or not. Refresh and Swap are for
// the first in line alone, and return [ErrStale] for any other.
//
// A Create finds a safe vacant if nobody is in line. A hand-over with others in
// line would jump it: Swap returns [ErrStale] then, if next has another
// signature.
type Queue interface {
	Store

	// Lines reports whether the store keeps lines, which its settings may decide. It
	// asks no server, and always says the same.
	Lines() bool

	// Join puts rec at the end of the line, and returns it as it stands there.
	// Of rec it uses the Signature, Value, Note and TTL, as Create does; the token is
	// the one that it is going to lead with. Whether it is first already, Stay
	// and Watch tell.
	//
	// If the signature is in line already (the answer to an earlier Join was
	// lost), Join returns that place as it stands. It does not start its TTL
	// anew.
	//
	// It returns [ErrInvalid] as Create does, and an error that matches
	// [errors.ErrUnsupported] if the store keeps no lines; then nothing
	// happened.
	Join(ctx context.Context, name string, rec Record) (Record, error)

	// Stay starts the TTL of a place anew, counted from the start of this call,
	// and returns it as it stands. Leads reports whether it is first in line, so
	// that the safe holds it, which makes the call as good as a Refresh.
	//
	// It returns [ErrStale] if rec's signature and token are not in line. A store
	// that keeps no lines may carry it out as a Refresh, or return what Join does.
	Stay(ctx context.Context, name string, rec Record) (place Record, leads bool, err error)
}
