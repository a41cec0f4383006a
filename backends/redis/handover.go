package rediskv

import (
	"context"
	"fmt"

	"github.com/electkv/election/kv"
)

// HandOver implements [kv.HandOver] with one script: GET of both safes, compare, SET
// with PXAT.
//
// In a cluster both safes have to be in one slot, as those of "{jobs}" and
// "{jobs}:heir" are. If they are not, the server refuses the script, and the error
// matches [errors.ErrUnsupported].
func (s *Store) HandOver(ctx context.Context, name string, old kv.Record, place string, heir kv.Record, note string) (kv.Record, error) {
	at, err := s.place(name)
	if err != nil {
		return kv.Record{}, err
	}
	own, err := s.place(place)
	if err != nil {
		return kv.Record{}, err
	}
	next := heir
	next.Note = note
	if err := checkHeir(name, old, place, next); err != nil {
		return kv.Record{}, err
	}
	if err := s.together(at, own); err != nil {
		return kv.Record{}, err
	}
	ttl, err := granted(heir.TTL)
	if err != nil {
		return kv.Record{}, err
	}
	text, value := s.form(next, ttl)
	reply, err := s.run(ctx, handOverScript, at.keys(at.counter, own.record, own.text),
		old.Signature, old.Token, old.Revision, heir.Signature, heir.Token, heir.Revision,
		text, value, ttl.Milliseconds(), at.channel)
	return s.written("hand over", name, reply, slotted(err, place), kv.ErrStale)
}

// checkHeir refuses a hand-over that can never be made.
func checkHeir(name string, old kv.Record, place string, heir kv.Record) error {
	if err := checkOwn(name, old); err != nil {
		return err
	}
	if err := checkNew(place, heir); err != nil {
		return err
	}
	if heir.Signature == old.Signature {
		return fmt.Errorf("rediskv: %q: want an heir with another signature: %w", name, kv.ErrInvalid)
	}
	return nil
}
