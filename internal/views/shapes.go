package views

import (
	"context"

	"github.com/electkv/election/kv"
)

// With returns a store that does what store does, and has the parts.
func (p Parts) With(store kv.Store) kv.Store {
	all := whole{store, p.Queue, p.HandOver, p.Vacate, p.Batch, p.Roster}
	if p.Roster != nil {
		return p.listing(all)
	}
	return map[[4]bool]kv.Store{
		{false, false, false, false}: struct{ kv.Store }{all},
		{false, false, false, true}:  struct{ kv.Batch }{all},
		{false, false, true, false}:  struct{ vacateAlone }{all},
		{false, false, true, true}:   struct{ vacateBatch }{all},
		{false, true, false, false}:  struct{ handOverAlone }{all},
		{false, true, false, true}:   struct{ handOverBatch }{all},
		{false, true, true, false}:   struct{ handOverVacate }{all},
		{false, true, true, true}:    struct{ handOverVacateBatch }{all},
		{true, false, false, false}:  struct{ kv.Queue }{all},
		{true, false, false, true}:   struct{ queueBatch }{all},
		{true, false, true, false}:   struct{ queueVacate }{all},
		{true, false, true, true}:    struct{ queueVacateBatch }{all},
		{true, true, false, false}:   struct{ queueHandOver }{all},
		{true, true, false, true}:    struct{ queueHandOverBatch }{all},
		{true, true, true, false}:    struct{ queueHandOverVacate }{all},
		{true, true, true, true}:     struct{ queueHandOverVacateBatch }{all},
	}[p.kinds()]
}

// listing returns all with its roster.
func (p Parts) listing(all whole) kv.Store {
	return map[[4]bool]kv.Store{
		{false, false, false, false}: struct {
			kv.Store
			roster
		}{all, all},
		{false, false, false, true}: struct {
			kv.Batch
			roster
		}{all, all},
		{false, false, true, false}: struct {
			vacateAlone
			roster
		}{all, all},
		{false, false, true, true}: struct {
			vacateBatch
			roster
		}{all, all},
		{false, true, false, false}: struct {
			handOverAlone
			roster
		}{all, all},
		{false, true, false, true}: struct {
			handOverBatch
			roster
		}{all, all},
		{false, true, true, false}: struct {
			handOverVacate
			roster
		}{all, all},
		{false, true, true, true}: struct {
			handOverVacateBatch
			roster
		}{all, all},
		{true, false, false, false}: struct {
			kv.Queue
			roster
		}{all, all},
		{true, false, false, true}: struct {
			queueBatch
			roster
		}{all, all},
		{true, false, true, false}: struct {
			queueVacate
			roster
		}{all, all},
		{true, false, true, true}: struct {
			queueVacateBatch
			roster
		}{all, all},
		{true, true, false, false}: struct {
			queueHandOver
			roster
		}{all, all},
		{true, true, false, true}: struct {
			queueHandOverBatch
			roster
		}{all, all},
		{true, true, true, false}: struct {
			queueHandOverVacate
			roster
		}{all, all},
		{true, true, true, true}: struct {
			queueHandOverVacateBatch
			roster
		}{all, all},
	}[p.kinds()]
}

// kinds reports which parts there are besides a roster.
func (p Parts) kinds() [4]bool { has := p.Has(); return [4]bool(has[:4]) }

// A whole has all parts, some of which may be nil.
type whole struct {
	kv.Store
	queue
	handOver
	vacate
	batch
	roster
}

// What the parts add to a store.
type (
	queue interface {
		Join(ctx context.Context, name string, rec kv.Record) (kv.Record, error)
		Stay(ctx context.Context, name string, rec kv.Record) (kv.Record, bool, error)
	}
	handOver interface {
		HandOver(ctx context.Context, name string, old kv.Record, place string, heir kv.Record, note string) (kv.Record, error)
	}
	vacate interface {
		Vacate(ctx context.Context, name string, rec kv.Record, place string) (kv.Record, error)
	}
	batch interface {
		RefreshAll(ctx context.Context, records []kv.Held, tell func(int, kv.Record, error))
	}
	roster interface {
		Members(ctx context.Context, name string, most int) ([]kv.Held, uint64, error)
		AwaitMembers(ctx context.Context, name string, version uint64) error
	}
)

// The parts together. A field of the name HandOver would hide the method.
type (
	vacateAlone   = kv.Vacate
	handOverAlone = kv.HandOver

	vacateBatch interface {
		kv.Vacate
		kv.Batch
	}
	handOverBatch interface {
		kv.HandOver
		kv.Batch
	}
	handOverVacate interface {
		kv.HandOver
		kv.Vacate
	}
	handOverVacateBatch interface {
		kv.HandOver
		kv.Vacate
		kv.Batch
	}
	queueBatch interface {
		kv.Queue
		kv.Batch
	}
	queueVacate interface {
		kv.Queue
		kv.Vacate
	}
	queueVacateBatch interface {
		kv.Queue
		kv.Vacate
		kv.Batch
	}
	queueHandOver interface {
		kv.Queue
		kv.HandOver
	}
	queueHandOverBatch interface {
		kv.Queue
		kv.HandOver
		kv.Batch
	}
	queueHandOverVacate interface {
		kv.Queue
		kv.HandOver
		kv.Vacate
	}
	queueHandOverVacateBatch interface {
		kv.Queue
		kv.HandOver
		kv.Vacate
		kv.Batch
	}
)
