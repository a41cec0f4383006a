package filekv

import (
	"context"
	"errors"
	"fmt"

	"github.com/electkv/election/kv"
)

// Swap adds a page after the one that holds old, by one link(2).
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

// publish changes the value and leaves the record's life as it is.
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
		got.Value, got.Revision = next.Value, cur.number+1
		return step{rec: got, clock: cur.page.Clock, deadline: cur.page.Deadline, before: cur.deadline}, nil
	})
	if err != nil {
		return kv.Record{}, err
	}
	return got, nil
}

// handOver changes the signature, and with it token, life and deadline.
func (s *Store) handOver(ctx context.Context, name string, old, heir kv.Record) (_ kv.Record, err error) {
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
	lease, err := s.pin()
	if err != nil {
		return kv.Record{}, err
	}
	defer func() { err = errors.Join(err, s.unpin()) }()
	if heir.Lease != "" {
		lease = heir.Lease
	}

	next := step{
		rec:      kv.Record{Signature: heir.Signature, Value: heir.Value, TTL: ttl, Lease: lease},
		clock:    s.clock,
		deadline: start + ttl,
		durable:  true,
	}
	err = s.write(ctx, f, func(cur state) (step, error) {
		if !cur.holds(old) {
			return step{}, kv.ErrStale
		}
		if err := s.checkHeir(lease); err != nil {
			return step{}, err
		}
		next.before = cur.deadline
		next.rec.Token, next.rec.Revision = cur.number+1, cur.number+1
		return next, nil
	})
	if err != nil {
		return kv.Record{}, err
	}
	return next.rec, errors.Join(s.keep(f, next), s.drop(f, old))
}

// checkHeir reports whether the process of a life file is there to inherit.
func (s *Store) checkHeir(lease string) error {
	if !isLife(lease) {
		return fmt.Errorf("%w: %.80q is no lease of this store", kv.ErrInvalid, lease)
	}
	p, err := s.feel(lease)
	if err == nil && p != alive {
		return fmt.Errorf("%w: the heir is gone", kv.ErrStale)
	}
	return err
}

// checkSwap reports whether old may be replaced by next at all.
func checkSwap(old, next kv.Record) error {
	if err := checkOwn(old); err != nil {
		return err
	}
	return checkText(next)
}
