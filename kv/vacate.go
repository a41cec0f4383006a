package kv

import "context"

// A Vacate is a [Store] that empties a safe and looks whether there is an heir in one
// step. With Get and Delete it takes two.
type Vacate interface {
	Store

	// Vacate empties the safe called name as Delete does, if the safe called place is
	// vacant. Both conditions and the write are one atomic step of the store.
	//
	// If the safe called place holds a live record, whoever's, it returns that record and
	// [ErrHeld], and nothing happened. It returns [ErrStale] if the safe called name does
	// not hold rec; if both are so, either. What the safe called place holds stays as it is.
	//
	// It returns an error that matches [errors.ErrUnsupported] if the store cannot do
	// this in one step for these two safes; then nothing happened, and Get and Delete
	// are left. After any other error the write may have happened, now or later.
	Vacate(ctx context.Context, name string, rec Record, place string) (heir Record, err error)
}
