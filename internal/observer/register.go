package observer

import (
	"context"
	"iter"
	"time"

	"github.com/electkv/election/kv"
)

// A Register is what a store has to offer so that observers can judge when one of its
// records has expired: one cell per name, and a write requires that the writer knows what
// the cell holds. Each write changes the revision, to one that the cell never had before,
// even if the cell was emptied, removed by an operator, or overwritten by
// another program meanwhile. So if a write was delayed in the network for any time, or
// arrives twice, it never again finds the record that it was meant for. Nothing in a
// Register expires.
//
// A Register holds the texts of [kv.EncodeObserved], or similar ones. It returns
// anything else in a cell as a foreign record. Its rules for contexts, names,
// atomicity, reads and errors are those of [kv.Store].
type Register interface {
	// Get returns what the cell holds, however old, or [kv.ErrVacant].
	Get(ctx context.Context, name string) (kv.Record, error)

	// Put writes next if the cell still holds old at old.Revision; if old is the
	// zero record, if the cell is empty. Of next it uses the Signature, Value, Note
	// and TTL. With old's signature the token stays old's; with another one, or
	// where the cell was empty, it is larger than every earlier one of that cell. The
	// revision is new in any case, even if next says what old did.
	//
	// It returns the record as it stands, or [kv.ErrStale] if the cell holds
	// anything else.
	Put(ctx context.Context, name string, old, next kv.Record) (kv.Record, error)

	// Remove empties the cell if it still holds old at old.Revision. It returns
	// [kv.ErrStale] if the cell holds anything else.
	Remove(ctx context.Context, name string, old kv.Record) error

	// Watch yields what the cell holds, and then each change of revision, merged if
	// the reader is slow; an empty cell as [kv.ErrVacant]. Every other error is the
	// last thing it yields.
	Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error]

	// Check returns [kv.ErrInvalid] if the store cannot keep a record with this TTL,
	// without asking it.
	Check(ttl time.Duration) error
}
