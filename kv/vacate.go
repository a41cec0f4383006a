package kv

import "context"

// A Vacate is a [Store] that checks for an heir and empties a safe in one step. With Get
// and Delete it takes two steps.
type Vacate interface {
	Store

	// Vacate empties the safe called name as Delete does, if the safe called place is
	// vacant. Both conditions and the write are one atomic step of the store.
	//
	// If the safe called place holds any live record, it returns that record and
	// [ErrHeld], and nothing happened. It returns [ErrStale] if the safe called name does
	// not hold rec. If both are true, it may return either. The safe called place stays as
	// it is.
	//
	// It returns an error that matches [errors.ErrUnsupported] if the store cannot do
	// this in one step for these two safes. Then nothing happened; use Get and Delete.
	// After any other error the write may have happened, or may still happen.
	Vacate(ctx context.Context, name string, rec Record, place string) (heir Record, err error)
}
