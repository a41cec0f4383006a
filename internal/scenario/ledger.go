package scenario

import (
	"context"
	"sync"
	"testing"
	"time"

	memkv "github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv"
)

// A ledger is the store itself, beneath what the candidates see of it. It notes
// which record handed the safe to which, and that no candidate sends requests without a pause.
type ledger struct {
	*memkv.Store
	t testing.TB

	mu    sync.Mutex
	from  map[uint64]uint64 // token of a record that was handed the safe: of whose
	since time.Time         // when it began to count
	calls int               // and how often it was asked since
	spins bool

	freed func(token uint64) // is told of each record that is taken out of the safe
}

// Invariant 7: nothing spins. Many candidates that all have something to do come to
// a few requests each.
const many = 100 // a second

func (l *ledger) count() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.since) >= time.Second {
		l.since, l.calls = time.Now(), 0
	}
	if l.calls++; l.calls == many && !l.spins {
		l.spins = true
		l.t.Errorf("something spins: the store is asked %d times within a second", many)
	}
}

// Create implements [kv.Store].
func (l *ledger) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	l.count()
	return l.Store.Create(ctx, name, rec)
}

// Swap implements [kv.Store].
func (l *ledger) Swap(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
	return l.hand(name, old, func() (kv.Record, error) { return l.Store.Swap(ctx, name, old, next) })
}

// HandOver implements [kv.HandOver].
func (l *ledger) HandOver(ctx context.Context, name string, old kv.Record, place string, heir kv.Record, note string) (kv.Record, error) {
	return l.hand(name, old, func() (kv.Record, error) { return l.Store.HandOver(ctx, name, old, place, heir, note) })
}

// hand notes which record was handed the safe, before any candidate knows.
func (l *ledger) hand(name string, old kv.Record, write func() (kv.Record, error)) (kv.Record, error) {
	l.count()
	l.mu.Lock()
	rec, err := write()
	handed := err == nil && name == scene && rec.Token != old.Token
	if handed {
		l.from[rec.Token] = old.Token
	}
	l.mu.Unlock()
	if handed {
		l.freed(old.Token)
	}
	return rec, err
}

// Refresh implements [kv.Store].
func (l *ledger) Refresh(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	l.count()
	return l.Store.Refresh(ctx, name, rec)
}

// Delete implements [kv.Store].
func (l *ledger) Delete(ctx context.Context, name string, rec kv.Record) error {
	l.count()
	err := l.Store.Delete(ctx, name, rec)
	if err == nil && name == scene {
		l.freed(rec.Token)
	}
	return err
}

// Vacate implements [kv.Vacate].
func (l *ledger) Vacate(ctx context.Context, name string, rec kv.Record, place string) (kv.Record, error) {
	l.count()
	heir, err := l.Store.Vacate(ctx, name, rec, place)
	if err == nil && name == scene {
		l.freed(rec.Token)
	}
	return heir, err
}

// Get implements [kv.Store].
func (l *ledger) Get(ctx context.Context, name string) (kv.Record, error) {
	l.count()
	return l.Store.Get(ctx, name)
}

// handed returns whose record handed the safe to this one, zero if none.
func (l *ledger) handed(token uint64) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.from[token]
}
