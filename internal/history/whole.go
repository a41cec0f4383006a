package history

import (
	"context"
	"errors"
	"fmt"

	"github.com/electkv/election/kv"
)

// A whole is the view of a store that hands over in one step. It also vacates in one step if the
// store does.
type whole struct{ *observed }

var (
	_ kv.HandOver = whole{}
	_ kv.Vacate   = whole{}
)

// HandOver implements [kv.HandOver].
func (o whole) HandOver(ctx context.Context, name string, old kv.Record, place string, heir kv.Record, note string) (kv.Record, error) {
	ctx, c := o.send(ctx, name, OpHandOver, old, heir.Signature)
	got, err := o.store.(kv.HandOver).HandOver(ctx, name, old, place, heir, note)
	c.answer(got, err)
	return got, err
}

// Vacate implements [kv.Vacate]. It is a delete in the history, and may be refused as held.
func (o whole) Vacate(ctx context.Context, name string, rec kv.Record, place string) (kv.Record, error) {
	store, ok := o.store.(kv.Vacate)
	if !ok {
		return kv.Record{}, fmt.Errorf("history: vacate %q: %w", name, errors.ErrUnsupported)
	}
	ctx, c := o.send(ctx, name, OpDelete, rec, "")
	heir, err := store.Vacate(ctx, name, rec, place)
	c.answer(kv.Record{}, err)
	if errors.Is(err, kv.ErrHeld) {
		o.see(place, heir, nil)
	}
	return heir, err
}
