package consulkv

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/electkv/election/kv"
)

// Vacate implements [kv.Vacate]: a read of both safes, and the Txn of [Store.Delete] on
// condition that the keys' ModifyIndexes are still those read; again if either has changed in
// between.
func (s *Store) Vacate(ctx context.Context, name string, rec kv.Record, place string) (kv.Record, error) {
	var heir kv.Record
	key, err := s.open(ctx, name)
	if err == nil {
		var home string
		if home, err = s.open(ctx, place); err == nil {
			err = s.deleteBy(ctx, key, rec, func() (err error) {
				heir, err = s.vacate(ctx, key, rec, home)
				return err
			})
		}
	}
	_, err = outcome(ctx, "vacate", name, kv.Record{}, err)
	return heir, err
}

// vacate unlocks the key for rec, unless there is an heir at home: then it returns the heir's
// record and [kv.ErrHeld].
func (s *Store) vacate(ctx context.Context, key string, rec kv.Record, home string) (kv.Record, error) {
	for tried := [2]version{}; ; {
		now, theirs, err := s.lookAtPair(ctx, key, home)
		switch {
		case err != nil:
			return kv.Record{}, err
		case !now.rec.Owns(rec):
			return kv.Record{}, kv.ErrStale
		case !theirs.vacant():
			return theirs.rec, fmt.Errorf("%q is not vacant: %w", home, kv.ErrHeld)
		}
		_, err = s.apply(ctx, key, slices.Concat(s.unchanged(key, now), s.unchanged(home, theirs), s.unlock(key, now.session, now.rest())))
		seen := [2]version{now.version, theirs.version}
		if _, refused := errors.AsType[*refusal](err); !refused || seen == tried {
			return kv.Record{}, err
		}
		tried = seen
	}
}
