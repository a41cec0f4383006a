package etcdkv

import (
	"context"

	"github.com/electkv/election/kv"
)

// Vacate implements [kv.Vacate] with one Txn, that of [Store.Delete] on condition that the
// other safe has no key. If it is refused, it reads what is first in line there.
func (s *Store) Vacate(ctx context.Context, name string, rec kv.Record, place string) (kv.Record, error) {
	var heir kv.Record
	sf, err := s.open(ctx, name)
	if err == nil {
		var own safe
		if own, err = s.safe(place); err == nil {
			heir, err = sf.delete(ctx, rec, own)
		}
	}
	_, err = outcome(ctx, "vacate", name, kv.Record{}, err)
	return heir, err
}
