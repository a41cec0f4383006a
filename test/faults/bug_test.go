//go:build linux

package faults

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/electkv/election/internal/mistake"
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
	// A refresh that goes together with others counts as done if the store has answered at
	// all; and an owner's watch tells it of nothing.
	bugSharedProof = "batch whose records prove each other"
	// A record that is still there counts as refreshed, though the keep-alive of its lease
	// had no answer. The candidate's keeper has this one.
	bugTxnAlone = "trust from the Txn alone"
	// A create whose answer was lost leaves its lease open, with what comes late: the candidate's
	// keeper says that etcd has refused it.
	bugOpenLease = "lost create that leaves its lease open"
	// Each refresh is made twice.
	bugUnasked = "request that the core has not asked for"
	// A release counts as done, and the store is never asked.
	bugSwallowed = "request that is answered and never made"
	// A scrape shows what the candidate was when the store was last heard. The candidate's web has
	// this one, and the next.
	bugStaleGauge = "gauge that is set and not computed"
	// A request is answered with the role of then.
	bugCachedRole = "answer from a role that is kept"
)

// plant returns the store as an engine with the bug would take it.
func plant(bug string, store kv.Store) (kv.Store, error) {
	switch bug {
	case bugReceipt:
		return mistake.FromReceipt(store), nil
	case bugBlindRefresh:
		return mistake.BlindRefresh(store), nil
	case bugBlindRelease:
		return mistake.BlindRelease(store), nil
	case bugNewNonce:
		return mistake.NewNonce(store), nil
	case bugDeafWatch:
		return deafWatch{store}, nil
	case bugSharedProof:
		return sharedProof{store, store.(kv.Batch), &sync.Map{}}, nil
	case bugTxnAlone, bugOpenLease, bugStaleGauge, bugCachedRole:
		return store, nil
	case bugUnasked:
		return unasked{store}, nil
	case bugSwallowed:
		return swallowed{store}, nil
	}
	return nil, fmt.Errorf("unknown bug %q", bug)
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

type sharedProof struct {
	kv.Store
	all  kv.Batch
	mine *sync.Map // the signatures that it has put somewhere
}

func (s sharedProof) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	got, err := s.Store.Create(ctx, name, rec)
	if err == nil {
		s.mine.Store(got.Signature, true)
	}
	return got, err
}

func (s sharedProof) RefreshAll(ctx context.Context, records []kv.Held, tell func(int, kv.Record, error)) {
	s.all.RefreshAll(ctx, records, func(i int, rec kv.Record, err error) {
		if errors.Is(err, kv.ErrStale) {
			rec, err = records[i].Record, nil
		}
		tell(i, rec, err)
	})
}

func (s sharedProof) Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	return func(yield func(kv.Record, error) bool) {
		for rec, err := range s.Store.Watch(ctx, name) {
			if !yield(rec, err) {
				return
			}
			if _, own := s.mine.Load(rec.Signature); own {
				<-ctx.Done()
			}
		}
	}
}

type unasked struct{ kv.Store }

func (u unasked) Refresh(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	if got, err := u.Store.Refresh(ctx, name, rec); err != nil {
		return got, err
	}
	return u.Store.Refresh(ctx, name, rec)
}

type swallowed struct{ kv.Store }

func (swallowed) Delete(context.Context, string, kv.Record) error { return nil }
