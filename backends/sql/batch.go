package sqlkv

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/electkv/election/internal/gate"
	"github.com/electkv/election/kv"
)

const (
	// crowd is how many records one statement refreshes.
	crowd = 100
	// longestShared is the size, in bytes, of the largest value and note, together, of a
	// record that is refreshed with others. They come back with each refresh.
	longestShared = 4 << 10

	listsAtOnce   = 4
	singlesAtOnce = 8
)

// RefreshAll implements [kv.Batch] with the statement refreshMany for each hundred
// records, and in MySQL with renewed after that. It refreshes the rows that hold their
// records and that nobody has locked, and decides nothing about the rest: each of these
// is refreshed by itself.
func (s *Store) RefreshAll(ctx context.Context, records []kv.Held, tell func(int, kv.Record, error)) {
	b := &batch{
		store: s, records: records, tell: tell,
		lists: gate.Fixed(s.width(listsAtOnce)), singles: gate.Fixed(s.width(singlesAtOnce)),
	}
	together, alone := b.parted()
	var going sync.WaitGroup
	for some := range slices.Chunk(together, crowd) {
		going.Go(func() { b.together(ctx, some) })
	}
	b.alone(ctx, alone)
	going.Wait()
}

// width returns how many of so many statements may go out at once.
func (t *table) width(most int) int {
	if t.unfit != nil {
		return most
	}
	return t.book.dialect.width(most)
}

// A batch is one call of RefreshAll.
type batch struct {
	store          *Store
	records        []kv.Held
	tell           func(int, kv.Record, error)
	lists, singles *gate.Gate
}

// parted returns the indexes of the records that are refreshed with others, by name, so
// that all lists lock their rows in one order, and those of the rest.
func (b *batch) parted() (together, alone []int) {
	for i, held := range b.records {
		rec := held.Record
		if b.store.checkName(held.Name) == nil && checkOwn(rec) == nil && len(rec.Value)+len(rec.Note) <= longestShared {
			together = append(together, i)
		} else {
			alone = append(alone, i)
		}
	}
	slices.SortFunc(together, func(i, j int) int { return cmp.Compare(b.records[i].Name, b.records[j].Name) })
	return together, alone
}

// together refreshes records by one statement, and those by themselves that it could
// not confirm.
func (b *batch) together(ctx context.Context, some []int) {
	var now map[string]kv.Record
	var err error
	b.lists.Do(ctx, func() { now, err = b.store.refreshMany(ctx, b.list(some)) })
	if err != nil && !b.store.book.dialect.unsuited(err) {
		for _, i := range some {
			rec, err := b.store.outcome(ctx, "refresh", b.records[i].Name, kv.Record{}, err)
			b.tell(i, rec, err)
		}
		return
	}
	var rest []int
	for _, i := range some {
		if rec, ok := now[b.records[i].Name]; ok && rec.Owns(b.records[i].Record) {
			b.tell(i, rec, nil)
		} else {
			rest = append(rest, i)
		}
	}
	b.alone(ctx, rest)
}

// alone refreshes records one by one, as many at once as the gate lets through.
func (b *batch) alone(ctx context.Context, some []int) {
	b.singles.Each(ctx, some, func(i int) {
		rec, err := b.store.Refresh(ctx, b.records[i].Name, b.records[i].Record)
		b.tell(i, rec, err)
	})
}

// list returns what a statement is told of the records. Bytes are in hexadecimal, which
// no character set has a say in.
func (b *batch) list(some []int) string {
	type line struct {
		Name      string `json:"n"`
		Signature string `json:"s"`
		Token     int64  `json:"t"`
	}
	lines := make([]line, len(some))
	for k, i := range some {
		held := b.records[i]
		lines[k] = line{held.Name, fmt.Sprintf("%X", held.Record.Signature), int64(held.Record.Token)}
		if b.store.book.dialect == MySQL {
			lines[k].Name = fmt.Sprintf("%X", held.Name)
		}
	}
	text, err := json.Marshal(lines)
	if err != nil {
		panic(fmt.Sprintf("sqlkv: texts and numbers are always JSON: %v", err))
	}
	return string(text)
}

// refreshMany refreshes the records of a list, and returns those that it can tell to be
// refreshed, as they stand. An error leaves open what became of all of them.
func (s *Store) refreshMany(ctx context.Context, list string) (map[string]kv.Record, error) {
	v := values{"safes": list}
	if s.book.dialect != MySQL {
		return s.records(ctx, s.book.refreshMany, v)
	}
	// It goes once: what is in the way of many may be in the way of one alone.
	args, err := s.args(ctx, s.book.refreshMany, v)
	if err != nil {
		return nil, err
	}
	result, err := s.db.ExecContext(ctx, s.book.refreshMany.text, args...)
	if err != nil {
		return nil, err
	}
	since, err := result.LastInsertId()
	if err != nil || since == 0 { // nothing was refreshed
		return nil, err
	}
	v["since"] = since
	return s.records(ctx, s.book.renewed, v)
}

// records returns the records of the rows that a statement has, by their names.
func (s *Store) records(ctx context.Context, st statement, v values) (map[string]kv.Record, error) {
	recs := make(map[string]kv.Record)
	err := s.rows(ctx, st, v, func(rows *sql.Rows) (err error) {
		clear(recs)
		for err == nil && rows.Next() {
			var name string
			var r row
			if err = rows.Scan(append(r.fields(), &name)...); err != nil {
				break
			}
			if _, twice := recs[name]; twice {
				err = errSeveral
			} else if rec, none := r.record(byStore); none == nil && r.unfit == fit {
				recs[name] = rec
			}
		}
		return errors.Join(err, rows.Err(), rows.Close())
	})
	return recs, err
}
