package kv

import "context"

// A HandOver is a [Store] that hands a safe over in one step, on the condition that the
// heir's own record is still there. With Get and Swap it takes two steps, and the heir's
// record may be gone between them.
type HandOver interface {
	Store

	// HandOver puts heir's signature, value and lease, with note as its note, into
	// the safe called name in the place of old, if that safe still holds old at
	// old.Revision and the safe called place still holds heir (its signature and
	// token, at heir.Revision). Both conditions and the write are one atomic step of
	// the store. Old and heir are records as this store has returned them. The record
	// gets a new, larger token; it is returned as it stands in the safe. The safe called
	// place stays as it is.
	//
	// Unlike a Swap with another signature, it renews nothing. If heir.Lease is set,
	// that lease backs the record from now on: the record lives for as long as the
	// lease does, which is counted from the heir's own last write or refresh. If not,
	// the record keeps itself alive, and gets its full TTL from the start of the call.
	// In either case the TTL of the record is heir's.
	//
	// It returns [ErrStale] if either safe holds anything else, or nothing, if the
	// heir's lease is gone, or if others wait in the line of the safe called name
	// (see [Queue]). It returns [ErrInvalid] if either record is foreign or has no
	// signature, if heir has old's signature, if heir.Lease is the lease that backs
	// old, or for a name or a note that the store does not take.
	//
	// It returns an error that matches [errors.ErrUnsupported] if the store cannot do
	// this in one step for these two safes. Then nothing happened; use Get and Swap.
	// After any other error the write may have happened, or may still happen.
	HandOver(ctx context.Context, name string, old Record, place string, heir Record, note string) (Record, error)
}
