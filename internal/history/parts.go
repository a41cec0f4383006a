package history

import (
	"context"
	"errors"

	"github.com/electkv/election/kv"
)

// Join implements [kv.Queue].
func (o *observed) Join(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	ctx, c := o.send(ctx, name, OpJoin, rec, "")
	got, err := o.store.(kv.Queue).Join(ctx, name, rec)
	c.answer(got, err)
	return got, err
}

// Stay implements [kv.Queue].
func (o *observed) Stay(ctx context.Context, name string, rec kv.Record) (place kv.Record, leads bool, err error) {
	ctx, c := o.send(ctx, name, OpStay, rec, "")
	place, leads, err = o.store.(kv.Queue).Stay(ctx, name, rec)
	c.answer(place, err)
	return place, leads, err
}

// HandOver implements [kv.HandOver].
func (o *observed) HandOver(ctx context.Context, name string, old kv.Record, place string, heir kv.Record, note string) (kv.Record, error) {
	ctx, c := o.send(ctx, name, OpHandOver, old, heir.Signature)
	got, err := o.store.(kv.HandOver).HandOver(ctx, name, old, place, heir, note)
	c.answer(got, err)
	return got, err
}

// Vacate implements [kv.Vacate]. It is a delete in the history, and may be refused as held.
func (o *observed) Vacate(ctx context.Context, name string, rec kv.Record, place string) (kv.Record, error) {
	ctx, c := o.send(ctx, name, OpDelete, rec, "")
	heir, err := o.store.(kv.Vacate).Vacate(ctx, name, rec, place)
	c.answer(kv.Record{}, err)
	if errors.Is(err, kv.ErrHeld) {
		o.see(place, heir, nil)
	}
	return heir, err
}

// RefreshAll implements [kv.Batch]. Each of the records is noted as a refresh.
func (o *observed) RefreshAll(ctx context.Context, records []kv.Held, tell func(int, kv.Record, error)) {
	calls := make([]call, len(records))
	for i, r := range records {
		_, calls[i] = o.send(ctx, r.Name, OpRefresh, r.Record, "")
	}
	o.store.(kv.Batch).RefreshAll(ctx, records, func(i int, rec kv.Record, err error) {
		calls[i].answer(rec, err)
		tell(i, rec, err)
	})
}
