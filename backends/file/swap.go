package filekv

import (
	"context"
	"fmt"

	"github.com/electkv/election/kv"
)

// Swap replaces the page that holds old, by one rename(2) of the head.
func (s *Store) Swap(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
	swap := s.publish
	if next.Signature != old.Signature {
		swap = s.handOver
	}
	got, err := swap(ctx, name, old, next)
	if err != nil {
		return kv.Record{}, fmt.Errorf("filekv: swap %.80q: %w", name, err)
	}
	return got, nil
}

// publish changes value and note, and leaves the record's life as it is.
func (s *Store) publish(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
	f, _, err := s.begin(ctx, name)
	if err != nil {
		return kv.Record{}, err
	}
	if err := checkSwap(old, next); err != nil {
		return kv.Record{}, err
	}
	var got kv.Record
	err = s.write(ctx, f, func(cur state) (step, error) {
		if !cur.holds(old) {
			return step{}, kv.ErrStale
		}
		got = cur.rec
		got.Value, got.Note, got.Revision = next.Value, next.Note, cur.next()
		return step{rec: got, life: cur.page.Life, clock: cur.page.Clock, deadline: cur.page.Deadline, until: cur.page.Until, before: cur.deadline}, nil
	})
	if err != nil {
		return kv.Record{}, err
	}
	return got, nil
}

// handOver changes the signature, and with it token, life and deadline.
func (s *Store) handOver(ctx context.Context, name string, old, heir kv.Record) (kv.Record, error) {
	f, start, err := s.begin(ctx, name)
	if err != nil {
		return kv.Record{}, err
	}
	if err := checkSwap(old, heir); err != nil {
		return kv.Record{}, err
	}
	ttl, err := grant(heir.TTL)
	if err != nil {
		return kv.Record{}, err
	}
	life, err := s.pin()
	if err != nil {
		return kv.Record{}, err
	}
	defer s.unpin()

	var next step
	err = s.write(ctx, f, func(cur state) (step, error) {
		if !cur.holds(old) {
			return step{}, kv.ErrStale
		}
		next = step{
			rec: kv.Record{
				Signature: heir.Signature, Value: heir.Value, Note: heir.Note, TTL: ttl,
				Token: cur.next(), Revision: cur.next(),
			},
			life:     life,
			deadline: start + ttl,
			before:   cur.deadline,
			durable:  true,
		}
		if heir.Lease != "" {
			if next.life, next.clock, err = s.inherit(heir); err != nil {
				return step{}, err
			}
		}
		next.rec.Lease = leaseOf(next.life, f)
		return next, nil
	})
	if err != nil {
		return kv.Record{}, err
	}
	s.drop(f, old)
	return next.rec, s.keep(f, next)
}

// inherit returns the heir's life, if the heir's own record is still there, and the
// clock to write beside it. If the heir's own is another than ours, that is nobody's:
// the lock of the life proves nothing here then, as the heir may live under another
// kernel, so all observe the record until the heir has refreshed it.
func (s *Store) inherit(heir kv.Record) (life, clock string, _ error) {
	life, name, ok := parseLease(heir.Lease)
	if !ok {
		return "", "", fmt.Errorf("%w: %.80q is no lease of this store", kv.ErrInvalid, heir.Lease)
	}
	own, err := s.look(s.folderOf(name))
	if err != nil {
		return "", "", err
	}
	if !own.backedBy(life) || own.rec.Signature != heir.Signature {
		return "", "", fmt.Errorf("%w: the heir is gone", kv.ErrStale)
	}
	ours, err := clockName()
	if err == nil && own.page.Clock != ours {
		clock = own.page.Clock + " handed over"
	}
	return life, clock, err
}

// checkSwap reports whether old may be replaced by next at all.
func checkSwap(old, next kv.Record) error {
	if err := checkOwn(old); err != nil {
		return err
	}
	return checkText(next)
}
