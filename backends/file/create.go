package filekv

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/electkv/election/kv"
)

// Create gives a vacant safe a page, by one rename(2) of its head. If somebody has
// removed the directory, it is made anew.
func (s *Store) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	got, err := s.create(ctx, name, rec)
	if errors.Is(err, fs.ErrNotExist) && !s.opts.ReadOnly { // what was written has gone too
		if err = s.prepare(); err == nil {
			got, err = s.create(ctx, name, rec)
		}
	}
	if err != nil {
		return kv.Record{}, fmt.Errorf("filekv: create %.80q: %w", name, err)
	}
	return got, nil
}

func (s *Store) create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	f, start, err := s.begin(ctx, name)
	if err != nil {
		return kv.Record{}, err
	}
	if err := checkText(rec); err != nil {
		return kv.Record{}, err
	}
	ttl, err := grant(rec.TTL)
	if err != nil {
		return kv.Record{}, err
	}
	// A look first, as most candidates need neither a life nor a place in the
	// queue to learn that the safe is held.
	cur, err := s.look(f)
	if err != nil {
		return kv.Record{}, err
	}
	var outlived uint64 // the number of the head that those before us have observed
	if cur.held {
		if outlived, err = s.outlived(f, cur); err != nil {
			return kv.Record{}, err
		}
	}
	life, release, err := s.backing(rec)
	if err != nil {
		return kv.Record{}, err
	}
	defer release()

	next := step{
		rec:      kv.Record{Signature: rec.Signature, Value: rec.Value, Note: rec.Note, TTL: ttl, Lease: leaseOf(life, f)},
		life:     life,
		deadline: start + ttl,
		until:    untilOf(rec.Lasting, ttl),
		durable:  true,
	}
	err = s.write(ctx, f, func(cur state) (step, error) {
		if cur.held && cur.found.number != outlived {
			return step{}, kv.ErrHeld
		}
		next.rec.Token, next.rec.Revision = cur.next(), cur.next()
		return next, nil
	})
	if err != nil {
		return kv.Record{}, err
	}
	return next.rec, s.keep(f, next)
}
