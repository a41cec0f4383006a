package kv

// A Board is a [Store] that shows a safe to many in one process at the price of one: while
// nothing changes, a follow of a safe that others follow too costs no goroutine and no
// request of its own.
type Board interface {
	Store

	// Follow shows tell what a loop over [Store.Watch] of the safe called name would
	// see, in the same order, until stop is called or an error other than [ErrVacant]
	// has ended it. Tell is called from other goroutines, one call at a time for each
	// Follow. While a call lasts, later states are merged into the newest.
	//
	// Requests are shared, so they carry no values of a caller's context.
	//
	// Stop returns when tell is not being called and never will be again, and what was
	// started for this Follow alone has ended; so tell must not call it. It may be called
	// more than once.
	Follow(name string, tell func(Record, error)) (stop func())
}
