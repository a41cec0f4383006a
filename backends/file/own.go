package filekv

import (
	"context"
	"errors"
	"fmt"

	"github.com/electkv/election/kv"
)

// Get lists the safe's folder and reads the page that its head names.
func (s *Store) Get(ctx context.Context, name string) (kv.Record, error) {
	f, _, err := s.begin(ctx, name)
	if err != nil {
		return kv.Record{}, fmt.Errorf("filekv: get %.80q: %w", name, err)
	}
	cur, err := s.look(f)
	if err != nil {
		return kv.Record{}, fmt.Errorf("filekv: get %.80q: %w", name, err)
	}
	if !cur.held {
		return kv.Record{}, fmt.Errorf("filekv: get %.80q: %w", name, kv.ErrVacant)
	}
	return cur.rec, nil
}

// Refresh replaces the page that holds rec by one with a new deadline, by one
// rename(2) of the head.
func (s *Store) Refresh(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	got, err := s.refresh(ctx, name, rec)
	if err != nil {
		return kv.Record{}, fmt.Errorf("filekv: refresh %.80q: %w", name, err)
	}
	return got, nil
}

func (s *Store) refresh(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	f, start, err := s.begin(ctx, name)
	if err != nil {
		return kv.Record{}, err
	}
	if err := checkOwn(rec); err != nil {
		return kv.Record{}, err
	}
	var next step
	err = s.write(ctx, f, func(cur state) (step, error) {
		if !cur.rec.Owns(rec) {
			return step{}, kv.ErrStale
		}
		// A refresh that began later may have come before this one.
		deadline := max(start+cur.rec.TTL, cur.deadline)
		next = step{rec: cur.rec, life: cur.page.Life, deadline: deadline, until: untilOf(cur.page.lasting(), cur.rec.TTL), before: cur.deadline}
		return next, nil
	})
	if errors.Is(err, kv.ErrStale) {
		s.drop(f, rec)
	}
	if err != nil {
		return kv.Record{}, err
	}
	return next.rec, s.keep(f, next)
}

// Delete leaves a head without a page, by one rename(2). It works on a full disk.
func (s *Store) Delete(ctx context.Context, name string, rec kv.Record) error {
	if err := s.delete(ctx, name, rec); err != nil {
		return fmt.Errorf("filekv: delete %.80q: %w", name, err)
	}
	return nil
}

func (s *Store) delete(ctx context.Context, name string, rec kv.Record) error {
	f, _, err := s.begin(ctx, name)
	if err != nil {
		return err
	}
	if err := checkOwn(rec); err != nil {
		return err
	}
	err = s.write(ctx, f, func(cur state) (step, error) {
		if !cur.rec.Owns(rec) {
			return step{}, kv.ErrStale
		}
		return step{before: cur.deadline}, nil
	})
	if err == nil || errors.Is(err, kv.ErrStale) {
		s.drop(f, rec)
	}
	return err
}

// checkOwn refuses foreign records.
func checkOwn(rec kv.Record) error {
	if rec.Foreign {
		return fmt.Errorf("%w: a foreign record", kv.ErrInvalid)
	}
	return nil
}
