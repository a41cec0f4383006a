package sqlkv

import (
	"context"
	"database/sql"
	"fmt"
	"iter"
	"time"

	"github.com/electkv/election/internal/observer"
	"github.com/electkv/election/kv"
)

// Observed is a [kv.Store] in a table of a database, in which the candidates judge
// expiry, each by its own clock: no clock of the database matters. Use [NewObserved] to
// make one.
type Observed struct {
	*observer.Store
	register register
}

// NewObserved returns a store like that of [New], but one in which the candidates judge
// expiry. Both may use the same table; to each, the records of the other are another
// program's locks.
func NewObserved(db *sql.DB, dialect Dialect, opts *Options) *Observed {
	r := register{newTable(db, dialect, opts, byObservers)}
	return &Observed{Store: observer.New(r, nil), register: r}
}

// Guard lets the transaction go on only if the safe holds rec: see [Store.Guard]. It
// holds as long as nobody has taken the safe over, however old the record is.
func (o *Observed) Guard(ctx context.Context, tx *sql.Tx, name string, rec kv.Record) error {
	return o.register.Guard(ctx, tx, name, rec)
}

// Condition returns the condition that the safe holds rec: see [Store.Condition].
// It holds as long as nobody has taken the safe over, however old the record is.
func (o *Observed) Condition(name string, rec kv.Record, after int) (where string, args []any) {
	return o.register.Condition(name, rec, after)
}

// A register is the table as cells that are written only by those who know what
// they hold.
type register struct{ *table }

var _ observer.Register = register{}

// Get returns what the row holds, however old.
func (r register) Get(ctx context.Context, name string) (kv.Record, error) {
	return r.get(ctx, name, byObservers)
}

// Put writes by one statement: tryReplace if the cell was seen empty (with insert,
// if there is no row), publish with the same signature, or else handOver.
func (r register) Put(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
	rec, err := r.put(ctx, name, old, next)
	return r.outcome(ctx, "put", name, rec, err)
}

func (r register) put(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
	if err := r.checkName(name); err != nil {
		return kv.Record{}, err
	}
	if err := checkNew(next); err != nil {
		return kv.Record{}, err
	}
	if old == (kv.Record{}) {
		ttl, err := granted(next.TTL)
		if err != nil {
			return kv.Record{}, err
		}
		return r.claim(ctx, name, next, ttl, kv.ErrStale)
	}
	if err := checkOwn(old); err != nil {
		return kv.Record{}, err
	}
	return r.replace(ctx, name, old, next)
}

// Remove empties the row by release, at the revision.
func (r register) Remove(ctx context.Context, name string, old kv.Record) error {
	_, err := r.outcome(ctx, "remove", name, kv.Record{}, r.remove(ctx, name, old))
	return err
}

// Watch looks as that of [Store] does.
func (r register) Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	return r.board.Watch(ctx, name)
}

// shortestObserved is the shortest TTL that observers judge.
const shortestObserved = 500 * time.Millisecond

// Check takes every TTL in which a refresh can be seen, and that the column can hold.
func (r register) Check(ttl time.Duration) error {
	if r.unfit != nil {
		return r.unfit
	}
	if ttl < shortestObserved {
		return fmt.Errorf("sqlkv: a TTL of %v: want at least %v where observers judge, since they have to see each refresh in time: %w", ttl, shortestObserved, kv.ErrInvalid)
	}
	if _, err := granted(ttl); err != nil {
		return fmt.Errorf("sqlkv: %w", err)
	}
	return nil
}
