package sqlkv

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/electkv/election/kv"
)

// A Store is a [kv.Store] in a table of a database, which judges expiry by its own
// clock (SQLite: by the host's). Use [New] to make one.
type Store struct{ *table }

var (
	_ kv.Batch = (*Store)(nil)
	_ kv.Board = (*Store)(nil)
)

// New returns a store in a table of the database. The caller keeps the database: its pool
// and settings, and closing it. The opts may be nil. [Migrate] makes the table.
func New(db *sql.DB, dialect Dialect, opts *Options) *Store {
	return &Store{newTable(db, dialect, opts, byStore)}
}

// Create implements [kv.Store] with the statement tryReplace. If that finds no vacant
// row, insert makes one unless there is a row, and tryReplace is sent again. In SQLite,
// Create then looks at what is in the way: see outlive.
func (s *Store) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	rec, err := s.create(ctx, name, rec)
	return s.outcome(ctx, "create", name, rec, err)
}

func (s *Store) create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	if err := s.checkName(name); err != nil {
		return kv.Record{}, err
	}
	if err := checkNew(rec); err != nil {
		return kv.Record{}, err
	}
	ttl, err := granted(rec.TTL)
	if err != nil {
		return kv.Record{}, err
	}
	got, err := s.claim(ctx, name, rec, ttl, kv.ErrHeld)
	if errors.Is(err, kv.ErrHeld) && s.seen != nil {
		return s.outlive(ctx, name, rec, ttl)
	}
	return got, err
}

// Swap implements [kv.Store] with one statement: publish with old's signature,
// handOver with another.
func (s *Store) Swap(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
	rec, err := s.swap(ctx, name, old, next)
	return s.outcome(ctx, "swap", name, rec, err)
}

func (s *Store) swap(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
	if err := s.checkName(name); err != nil {
		return kv.Record{}, err
	}
	if err := checkNew(next); err != nil {
		return kv.Record{}, err
	}
	if err := checkOwn(old); err != nil {
		return kv.Record{}, err
	}
	if next.Signature == old.Signature {
		next.TTL = old.TTL
	}
	return s.replace(ctx, name, old, next)
}

// replace puts next where old is, at old's revision.
func (t *table) replace(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
	ttl, err := granted(next.TTL)
	if err != nil {
		return kv.Record{}, err
	}
	v := ownedBy(old)
	v["value"], v["note"], v["ttl"] = []byte(next.Value), []byte(next.Note), ttl
	if next.Signature == old.Signature {
		n, err := t.change(ctx, t.book.publish, name, v, kv.ErrStale)
		return written(next, old.Token, n, ttl), err
	}
	v["next"] = []byte(next.Signature)
	n, err := t.change(ctx, t.book.handOver, name, v, kv.ErrStale)
	return written(next, n, n, ttl), err
}

// ownedBy returns the arguments by which a statement knows a record.
func ownedBy(rec kv.Record) values {
	return values{"signature": []byte(rec.Signature), "token": int64(rec.Token), "revision": int64(rec.Revision)}
}

// Refresh implements [kv.Store] with the statement refresh, which shows the
// record. MySQL cannot show what it changes, so checkUnexpired follows there; if
// the record is replaced in between, the refresh has had no effect that lasts.
func (s *Store) Refresh(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	rec, err := s.refresh(ctx, name, rec)
	return s.outcome(ctx, "refresh", name, rec, err)
}

func (s *Store) refresh(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	if err := s.checkName(name); err != nil {
		return kv.Record{}, err
	}
	if err := checkOwn(rec); err != nil {
		return kv.Record{}, err
	}
	v := ownedBy(rec)
	var now row
	if s.book.dialect == MySQL {
		_, err := s.change(ctx, s.book.refresh, name, v, kv.ErrStale)
		if err == nil {
			now, err = s.look(ctx, name)
		}
		if err != nil {
			return kv.Record{}, err
		}
	} else {
		v["name"] = s.name(name)
		found, err := s.query(ctx, s.book.refresh, v, now.fields()...)
		if err == nil && !found {
			err = kv.ErrStale
		}
		if err != nil {
			return kv.Record{}, err
		}
	}
	got, err := now.record(byStore)
	if err != nil || !got.Owns(rec) {
		return kv.Record{}, fmt.Errorf("%w: it was replaced at this moment", kv.ErrStale)
	}
	return got, nil
}

// Delete implements [kv.Store] with the statement release.
func (s *Store) Delete(ctx context.Context, name string, rec kv.Record) error {
	_, err := s.outcome(ctx, "delete", name, kv.Record{}, s.remove(ctx, name, rec))
	return err
}

// remove empties the safe.
func (t *table) remove(ctx context.Context, name string, rec kv.Record) error {
	if err := t.checkName(name); err != nil {
		return err
	}
	if err := checkOwn(rec); err != nil {
		return err
	}
	_, err := t.change(ctx, t.book.release, name, ownedBy(rec), kv.ErrStale)
	return err
}

// Get implements [kv.Store] with the statement checkUnexpired, on the primary.
func (s *Store) Get(ctx context.Context, name string) (kv.Record, error) {
	return s.get(ctx, name, byStore)
}

func (t *table) get(ctx context.Context, name string, j judge) (kv.Record, error) {
	var rec kv.Record
	err := t.checkName(name)
	if err == nil {
		var r row
		if r, err = t.look(ctx, name); err == nil {
			rec, err = r.record(j)
		}
	}
	return t.outcome(ctx, "get", name, rec, err)
}

// Watch implements [kv.Store]. It looks by checkUnexpired: when PostgreSQL tells of
// a change, when the record is due to expire, and now and then.
func (s *Store) Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	return s.board.Watch(ctx, name)
}

// Follow implements [kv.Board], as Watch watches.
func (s *Store) Follow(name string, tell func(kv.Record, error)) (stop func()) {
	return s.board.Follow(name, tell)
}

// Lifetime implements [kv.Store]: records live for the TTL in whole microseconds,
// rounded up.
func (s *Store) Lifetime(ttl time.Duration) (kv.Lifetime, error) {
	if s.unfit != nil {
		return kv.Lifetime{}, s.unfit
	}
	µs, err := granted(ttl)
	if err != nil {
		return kv.Lifetime{}, fmt.Errorf("sqlkv: lifetime: %w", err)
	}
	life := time.Duration(µs) * time.Microsecond
	return kv.Lifetime{Min: life, Max: life + time.Millisecond}, nil
}
