package election

import (
	"context"
	"fmt"

	"github.com/electkv/election/kv"
)

// heldBy returns an ErrHeld that names the owner of a record that was seen in the
// office's safe. Without a record it names nobody.
func (o office) heldBy(rec kv.Record) error {
	switch {
	case rec.Foreign:
		return fmt.Errorf("%w: a lock that this library did not write, with the value %.80q", ErrHeld, rec.Value)
	case rec.Signature == "":
		return ErrHeld
	}
	return fmt.Errorf("%w: %s %q, token %d", ErrHeld, o, idOf(rec.Signature), rec.Token)
}

// whoHolds returns an ErrHeld for a safe that was just refused. It asks the store
// whose it is; if that does not tell, nobody is named.
func (c *campaign) whoHolds(ctx context.Context) error {
	var rec kv.Record
	err := c.attempt(ctx, func(ctx context.Context) (err error) {
		rec, err = c.store.Get(ctx, c.name)
		return err
	})
	if err != nil {
		rec = kv.Record{}
	}
	return c.office.heldBy(rec)
}
