// Package views composes views of stores that can do what the stores can.
//
// The type of a store tells what it can do beyond a [kv.Store], so a view of any store
// would need a type for each combination. Here they are, once.
package views

import "github.com/electkv/election/kv"

// Parts are what a store can do beyond a [kv.Store]: those that it cannot are nil. A
// [kv.Board] is none of them: it would show what a view's own Watch does not see.
type Parts struct {
	Queue    kv.Queue
	HandOver kv.HandOver
	Vacate   kv.Vacate
	Batch    kv.Batch
	Roster   kv.Roster
}

// Of returns the parts of a store.
func Of(store kv.Store) (p Parts) {
	p.Queue, _ = store.(kv.Queue)
	p.HandOver, _ = store.(kv.HandOver)
	p.Vacate, _ = store.(kv.Vacate)
	p.Batch, _ = store.(kv.Batch)
	p.Roster, _ = store.(kv.Roster)
	return p
}

// Has reports which parts there are, in their order.
func (p Parts) Has() [5]bool {
	return [5]bool{p.Queue != nil, p.HandOver != nil, p.Vacate != nil, p.Batch != nil, p.Roster != nil}
}

// Over returns view, which is a view of store, with the parts that store has, and no others.
// Each is the view's own, if it has one. If not, the store's is reached past the view.
func Over(store, view kv.Store) kv.Store {
	p, own := Of(store), Of(view)
	return Parts{
		Queue:    over(p.Queue, own.Queue),
		HandOver: over(p.HandOver, own.HandOver),
		Vacate:   over(p.Vacate, own.Vacate),
		Batch:    over(p.Batch, own.Batch),
		Roster:   over(p.Roster, own.Roster),
	}.With(view)
}

func over[P comparable](store, view P) P {
	var none P
	if store == none || view == none {
		return store
	}
	return view
}
