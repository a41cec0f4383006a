//go:build linux

package faults

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"github.com/electkv/election/kv"
)

// The planted bugs. What the store says is bent on its way to the engine, so
// that the engine does what one with the bug would.
const (
	// The clock of a lease starts when the answer comes: the TTL grows by the
	// time that the answer took.
	bugReceipt = "clock from receipt"
	// A refresh that finds somebody else's record, or none, counts as done, as
	// with a store whose lease knows nothing of its key.
	bugBlindRefresh = "refresh without key check"
	// A release removes whatever is there.
	bugBlindRelease = "unconditional release"
	// A create whose answer was lost is tried again under another signature, so
	// that the candidate does not know its own record.
	bugNewNonce = "lost create retried under a new nonce"
	// A watch shows what is there, and then hears of nothing any more.
	bugDeafWatch = "watch that trusts in events that do not come"
)

// plant returns the store as an engine with the bug would take it.
func plant(bug string, store kv.Store) (kv.Store, error) {
	switch bug {
	case bugReceipt:
		return receipt{store}, nil
	case bugBlindRefresh:
		return blindRefresh{store}, nil
	case bugBlindRelease:
		return blindRelease{store}, nil
	case bugNewNonce:
		return &newNonce{Store: store}, nil
	case bugDeafWatch:
		return deafWatch{store}, nil
	}
	return nil, fmt.Errorf("unknown bug %q", bug)
}

type receipt struct{ kv.Store }

func (r receipt) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	sent := time.Now()
	rec, err := r.Store.Create(ctx, name, rec)
	rec.TTL += time.Since(sent)
	return rec, err
}

func (r receipt) Refresh(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	sent := time.Now()
	rec, err := r.Store.Refresh(ctx, name, rec)
	rec.TTL += time.Since(sent)
	return rec, err
}

type blindRefresh struct{ kv.Store }

func (b blindRefresh) Refresh(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	got, err := b.Store.Refresh(ctx, name, rec)
	if errors.Is(err, kv.ErrStale) {
		return rec, nil
	}
	return got, err
}

type blindRelease struct{ kv.Store }

func (b blindRelease) Delete(ctx context.Context, name string, _ kv.Record) error {
	rec, err := b.Get(ctx, name)
	if err != nil {
		return err
	}
	return b.Store.Delete(ctx, name, rec)
}

type newNonce struct {
	kv.Store
	creates atomic.Int64
}

func (n *newNonce) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	rec.Signature = fmt.Sprintf("%s %d", rec.Signature, n.creates.Add(1))
	return n.Store.Create(ctx, name, rec)
}

type deafWatch struct{ kv.Store }

func (d deafWatch) Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	return func(yield func(kv.Record, error) bool) {
		for rec, err := range d.Store.Watch(ctx, name) {
			if !yield(rec, err) {
				return
			}
			if !rec.Foreign && rec.Signature != "" {
				<-ctx.Done()
			}
		}
	}
}
