package stores

import (
	"context"
	"iter"
	"sync/atomic"

	"github.com/electkv/election/kv"
)

// A migrating store makes the table, if it is missing, before its first request: users
// who name a database expect to be done. It hides [kv.Batch] and [kv.Board], which make
// many elections in one process cheaper: an elect run has only one.
type migrating struct {
	kv.Store
	db *Database

	turn  chan struct{} // has room for one
	ready atomic.Bool
}

func newMigrating(store kv.Store, db *Database) *migrating {
	return &migrating{Store: store, db: db, turn: make(chan struct{}, 1)}
}

func (m *migrating) migrate(ctx context.Context) error {
	if m.ready.Load() {
		return nil
	}
	select {
	case m.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-m.turn }()
	if m.ready.Load() {
		return nil
	}
	err := m.db.migrate(ctx)
	m.ready.Store(err == nil)
	return err
}

// Create implements [kv.Store].
func (m *migrating) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	if err := m.migrate(ctx); err != nil {
		return kv.Record{}, err
	}
	return m.Store.Create(ctx, name, rec)
}

// Get implements [kv.Store].
func (m *migrating) Get(ctx context.Context, name string) (kv.Record, error) {
	if err := m.migrate(ctx); err != nil {
		return kv.Record{}, err
	}
	return m.Store.Get(ctx, name)
}

// Watch implements [kv.Store].
func (m *migrating) Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	return func(yield func(kv.Record, error) bool) {
		if err := m.migrate(ctx); err != nil {
			yield(kv.Record{}, err)
			return
		}
		m.Store.Watch(ctx, name)(yield)
	}
}
