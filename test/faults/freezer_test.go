//go:build linux

package faults

import (
	"context"
	"sync"

	"github.com/electkv/election/kv"
)

// A freezer is a store that stops its process right before a request is sent,
// or when its answer has come and nobody has seen it.
type freezer struct {
	kv.Store

	mu    sync.Mutex
	op    string
	after bool
	sleep func(where string)
}

// next makes it stop the process at the next call of op.
func (f *freezer) next(op string, after bool, sleep func(string)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.op, f.after, f.sleep = op, after, sleep
}

func (f *freezer) stop(op string, after bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.op != op || f.after != after {
		return
	}
	f.op = ""
	if after {
		f.sleep("between the answer to " + op + " and its reading")
	} else {
		f.sleep("before it sends " + op)
	}
}

func (f *freezer) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	f.stop("create", false)
	defer f.stop("create", true)
	return f.Store.Create(ctx, name, rec)
}

func (f *freezer) Refresh(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	f.stop("refresh", false)
	defer f.stop("refresh", true)
	return f.Store.Refresh(ctx, name, rec)
}

// RefreshAll implements [kv.Batch].
func (f *freezer) RefreshAll(ctx context.Context, records []kv.Held, tell func(int, kv.Record, error)) {
	f.stop("refresh", false)
	f.Store.(kv.Batch).RefreshAll(ctx, records, func(i int, rec kv.Record, err error) {
		f.stop("refresh", true)
		tell(i, rec, err)
	})
}

func (f *freezer) Delete(ctx context.Context, name string, rec kv.Record) error {
	f.stop("delete", false)
	defer f.stop("delete", true)
	return f.Store.Delete(ctx, name, rec)
}

// Vacate implements [kv.Vacate]. It is a delete.
func (f *freezer) Vacate(ctx context.Context, name string, rec kv.Record, place string) (kv.Record, error) {
	f.stop("delete", false)
	defer f.stop("delete", true)
	return f.Store.(kv.Vacate).Vacate(ctx, name, rec, place)
}

func (f *freezer) HandOver(ctx context.Context, name string, old kv.Record, place string, heir kv.Record, note string) (kv.Record, error) {
	f.stop("handover", false)
	defer f.stop("handover", true)
	return f.Store.(kv.HandOver).HandOver(ctx, name, old, place, heir, note)
}
