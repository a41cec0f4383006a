package kv

// A Board is a [Store] on which many callers in one process can watch a safe at the price of
// one: while nothing changes, a follow of a safe that others follow too costs no goroutine
// and no request of its own.
type Board interface {
	Store

	// Follow calls tell with what a loop over [Store.Watch] of the safe called name would
	// see, in the same order, until stop is called or an error other than [ErrVacant]
	// has ended it. It calls tell from other goroutines, one call at a time for each
	// Follow. While a call lasts, later states are merged into the newest.
	//
	// Requests are shared, so they carry no values of a caller's context.
	//
	// When stop returns, tell is not running and will not be called again, and everything
	// that was started for this Follow alone has ended. So tell must not call stop. Stop may
	// be called more than once.
	Follow(name string, tell func(Record, error)) (stop func())
}
