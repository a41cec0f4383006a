package sqlkv

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/electkv/election/internal/board"
	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/ctxend"
	"github.com/electkv/election/internal/observer"
	"github.com/electkv/election/kv"
)

// patience is the longest that a statement waits for a row's lock in PostgreSQL,
// before it is sent again.
const patience = 10 * time.Second

// A table is where safes are kept, by one judge of their expiry.
type table struct {
	db    *sql.DB
	book  *phrasebook
	label string // the table's name, for people
	where values // the table's name, for questions about it
	needs []need

	options []any // what the driver is told before the arguments
	poll    time.Duration
	channel string
	hub     *hub // nil where nobody pushes
	board   *board.Board
	seen    *observer.Sightings // of records by other clocks; nil where all share one
	unfit   error               // why the table cannot be used at all, or nil
}

func newTable(db *sql.DB, dialect Dialect, opts *Options, j judge) *table {
	if opts == nil {
		opts = &Options{}
	}
	t := &table{db: db, poll: opts.Poll, label: opts.table()}
	if t.poll <= 0 {
		t.poll = defaultPoll
	}
	t.board = t.shown(j)
	if t.unfit = opts.check(db, dialect); t.unfit != nil {
		return t
	}
	t.book = newPhrasebook(dialect, j, opts.identifier(dialect))
	t.where, t.needs = opts.where(dialect), dialect.needs(opts)
	switch dialect {
	case SQLite:
		if j == byStore {
			t.seen = observer.NewSightings()
		}
	case PostgreSQL:
		t.channel = channelOf(opts.name())
		if opts.Driver == nil {
			break
		}
		if t.options = opts.Driver.First(db); t.options != nil {
			t.hub = newHub(opts.Driver, db, t.channel)
		}
	}
	return t
}

// channelOf returns the channel on which changes of the safes in a table are
// told. Schemas with tables of one name share it: what is told there is a hint.
func channelOf(table string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(table)) // a hash's Write returns no error
	return "election_" + strconv.FormatUint(h.Sum64(), 16)
}

// ambient adds to the arguments of a statement what is true at this moment.
func (t *table) ambient(ctx context.Context, v values) (values, error) {
	var here boottime.Frame
	if t.book.dialect == SQLite {
		var err error
		if here, err = boottime.Here(); err != nil {
			return nil, err
		}
	}
	all := values{
		"now":    int64(boottime.Now()),
		"wall":   time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"),
		"micros": time.Now().UnixMicro(),
		"boot":   here.Boot, "timens": here.Space,
		"channel": t.channel,
	}
	wait := patience
	if deadline, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(deadline))
	}
	all["patience"] = strconv.FormatInt(max(wait.Milliseconds(), 1), 10) // 0 would be for ever
	maps.Copy(all, v)
	return all, nil
}

// args returns what the driver is given with a statement.
func (t *table) args(ctx context.Context, st statement, v values) ([]any, error) {
	all, err := t.ambient(ctx, v)
	return append(append([]any(nil), t.options...), st.args(all)...), err
}

// patiently carries do out, anew as long as all that came of it was to lose
// against another transaction. ctx ends that.
func (t *table) patiently(ctx context.Context, do func() error) error {
	for {
		err := do()
		if err == nil || !t.book.dialect.conflict(err) {
			return err
		}
		timer := time.NewTimer(time.Millisecond + rand.N(20*time.Millisecond))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%w: another transaction was in the way: %w", context.Cause(ctx), err)
		}
	}
}

// query carries out a statement that has one row, or none, and tells which.
func (t *table) query(ctx context.Context, st statement, v values, dest ...any) (found bool, err error) {
	err = t.rows(ctx, st, v, func(rows *sql.Rows) (err error) {
		found, err = only(rows, dest...)
		return err
	})
	return found && err == nil, err
}

// rows carries out a statement that has rows, which read is given. It reads on to the
// end: before that a write is not known to be committed.
func (t *table) rows(ctx context.Context, st statement, v values, read func(*sql.Rows) error) error {
	return t.patiently(ctx, func() error {
		if st.dated {
			return t.underLock(ctx, func(conn *sql.Conn) error { return t.once(ctx, conn, st, v, read) })
		}
		return t.once(ctx, t.db, st, v, read)
	})
}

// A querier is a database or a connection to one.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// once carries out a statement that has rows. Its arguments tell the time.
func (t *table) once(ctx context.Context, q querier, st statement, v values, read func(*sql.Rows) error) error {
	args, err := t.args(ctx, st, v)
	if err != nil {
		return err
	}
	rows, err := q.QueryContext(ctx, st.text, args...)
	if err != nil {
		return err
	}
	return read(rows)
}

var errSeveral = errors.New("several rows have one name: see what sqlkv.Migrate says of the table")

// only reads the one row that there is, or finds that there is none. Of several it
// takes none for the safe.
func only(rows *sql.Rows, dest ...any) (found bool, err error) {
	for err == nil && rows.Next() {
		if found {
			err = errSeveral
			break
		}
		found, err = true, rows.Scan(dest...)
	}
	return found, errors.Join(err, rows.Err(), rows.Close())
}

// exec carries out a statement that has no rows.
func (t *table) exec(ctx context.Context, st statement, v values) (result sql.Result, err error) {
	err = t.patiently(ctx, func() error {
		args, err := t.args(ctx, st, v)
		if err == nil {
			result, err = t.db.ExecContext(ctx, st.text, args...)
		}
		return err
	})
	return result, err
}

// look reads a safe's row.
func (t *table) look(ctx context.Context, name string) (row, error) {
	var r row
	found, err := t.query(ctx, t.book.checkUnexpired, values{"name": t.name(name)}, r.fields()...)
	switch {
	case err != nil:
		return row{}, err
	case !found:
		return row{}, errors.New("the server has no answer to a question that always has one")
	case r.unfit != fit:
		return row{}, r.unfit.err()
	}
	t.observe(name, &r)
	return r, nil
}

// change carries out a statement that gives a row its next revision, and returns
// that, or else the refusal.
func (t *table) change(ctx context.Context, st statement, name string, v values, refusal error) (uint64, error) {
	v["name"] = t.name(name)
	if t.book.dialect == MySQL {
		return t.changeUnseen(ctx, st, name, v, refusal)
	}
	var revision int64
	var told sql.NullString
	found, err := t.query(ctx, st, v, &revision, &told)
	if err == nil && !found {
		err = refusal
	}
	return uint64(revision), err
}

// changeUnseen is change where a row that is changed cannot be shown. What was
// refused may have been so since the server is none to write to.
func (t *table) changeUnseen(ctx context.Context, st statement, name string, v values, refusal error) (uint64, error) {
	result, err := t.exec(ctx, st, v)
	if err != nil {
		return 0, err
	}
	revision, err := result.LastInsertId()
	if err == nil && revision == 0 {
		if _, err = t.look(ctx, name); err == nil {
			err = refusal
		}
	}
	return uint64(revision), err
}

// claim puts a record into a vacant safe, and makes the safe's row if there is
// none yet. A refusal may mean that there was no row, which is no reason to refuse:
// only one that comes after insert, whoever made the row, tells of another record.
func (t *table) claim(ctx context.Context, name string, rec kv.Record, ttl int64, refusal error) (kv.Record, error) {
	v := values{"signature": []byte(rec.Signature), "value": []byte(rec.Value), "note": []byte(rec.Note), "ttl": ttl, "lasting": rec.Lasting}
	n, err := t.change(ctx, t.book.tryReplace, name, v, refusal)
	if errors.Is(err, refusal) {
		if _, err = t.exec(ctx, t.book.insert, values{"name": t.name(name)}); err == nil {
			n, err = t.change(ctx, t.book.tryReplace, name, v, refusal)
		}
	}
	return written(rec, n, n, ttl), err
}

// name returns a safe's name as the table has it: MySQL's are bytes, that no
// character set has a say in.
func (t *table) name(name string) any {
	if t.book.dialect == MySQL {
		return []byte(name)
	}
	return name
}

// outcome is what every operation returns. Once ctx has ended, an error that
// leaves the outcome open reports ctx's cause, whatever the driver made of it.
func (t *table) outcome(ctx context.Context, op, name string, rec kv.Record, err error) (kv.Record, error) {
	if err == nil {
		return rec, nil
	}
	if !definite(err) {
		err = ctxend.Wrap(ctx, err)
	}
	if t.book != nil && t.book.dialect.missing(err) {
		err = fmt.Errorf("the table %s, or a column of it, is missing: make it with sqlkv.Migrate, or with the statements of sqlkv.Migration: %w", t.label, err)
	}
	return kv.Record{}, fmt.Errorf("sqlkv: %s %.80q: %w", op, name, err)
}

func definite(err error) bool {
	return errors.Is(err, kv.ErrVacant) || errors.Is(err, kv.ErrHeld) ||
		errors.Is(err, kv.ErrStale) || errors.Is(err, kv.ErrInvalid)
}
