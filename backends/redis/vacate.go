package rediskv

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/electkv/election/kv"
)

// Vacate implements [kv.Vacate] with one script: GETEX of the other safe, and then that
// of Delete.
//
// In a cluster both safes have to be in one slot, as for [Store.HandOver]. While that
// slot migrates, a release takes a Get and a Delete.
func (s *Store) Vacate(ctx context.Context, name string, rec kv.Record, place string) (kv.Record, error) {
	at, err := s.place(name)
	if err != nil {
		return kv.Record{}, err
	}
	own, err := s.place(place)
	if err != nil {
		return kv.Record{}, err
	}
	if err := checkOwn(name, rec); err != nil {
		return kv.Record{}, err
	}
	if err := s.together(at, own); err != nil {
		return kv.Record{}, err
	}
	reply, err := s.run(ctx, vacateScript, at.keys(own.record, own.text), rec.Signature, rec.Token, at.channel)
	heir := kv.Record{}
	if fields, held := reply.([]any); held && len(fields) == 3 {
		if heir, _, err = s.seen(fields); err == nil {
			err = fmt.Errorf("%q is not vacant: %w", place, kv.ErrHeld)
		}
	}
	if redis.HasErrorPrefix(err, "TRYAGAIN") { // nothing has run
		err = fmt.Errorf("%w while the slot migrates: %w", errors.ErrUnsupported, err)
	}
	return heir, outcome("vacate", name, slotted(err, place), kv.ErrStale)
}

// together refuses two safes that a cluster keeps apart. Where another than the client knows
// that it is one, the server refuses them.
func (s *Store) together(at, own place) error {
	if _, cluster := s.client.(*redis.ClusterClient); cluster && tag(at.record) != tag(own.record) {
		return fmt.Errorf("rediskv: %w: %q and %q are in different slots: want a common hash tag, as in {a} and {a}:b", errors.ErrUnsupported, at.record, own.record)
	}
	return nil
}

// tag returns what the slot of a key follows from (Redis Cluster specification, "Hash tags").
func tag(key string) string {
	if _, rest, ok := strings.Cut(key, "{"); ok {
		if end := strings.Index(rest, "}"); end > 0 {
			return rest[:end]
		}
	}
	return key
}

// slotted makes of a server's refusal of two safes one that says so.
func slotted(err error, place string) error {
	if redis.HasErrorPrefix(err, "CROSSSLOT") {
		return fmt.Errorf("%w: the safe is in another slot than %q: %w", errors.ErrUnsupported, place, err)
	}
	return err
}
