package sqlkv_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	sqlkv "github.com/electkv/election/backends/sql"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// reports makes a table of data that the leader alone may write to.
func (p *place) reports(t testing.TB) {
	t.Helper()
	p.do(t, "CREATE TABLE report (id INTEGER PRIMARY KEY, author BIGINT, written BIGINT)")
	p.do(t, "INSERT INTO report (id, author, written) VALUES (1, 0, 0)")
}

// author returns who wrote last.
func (p *place) author(t testing.TB) (author uint64) {
	t.Helper()
	require.NoError(t, p.hand.QueryRowContext(within(t, patience), "SELECT author FROM report").Scan(&author))
	return author
}

// writesAlone has the owner of rec write by a single statement, and reports whether
// the database let it.
func (p *place) writesAlone(t testing.TB, db *sql.DB, store guarded, name string, rec kv.Record) bool {
	t.Helper()
	where, args := store.Condition(name, rec, 2)
	result, err := db.ExecContext(within(t, patience), p.say("UPDATE report SET author = ?, written = written + 1 WHERE id = ? AND ")+where,
		append([]any{int64(rec.Token), 1}, args...)...)
	require.NoError(t, err)
	n, err := result.RowsAffected()
	require.NoError(t, err)
	return n > 0
}

// writesInside has the owner of rec write in a transaction, and reports whether the
// database let it.
func (p *place) writesInside(t testing.TB, db *sql.DB, store guarded, name string, rec kv.Record) bool {
	t.Helper()
	tx, err := db.BeginTx(within(t, patience), nil)
	require.NoError(t, err)
	defer func() { _ = tx.Rollback() }()
	err = store.Guard(within(t, patience), tx, name, rec)
	if errors.Is(err, kv.ErrStale) {
		return false
	}
	require.NoError(t, err)
	_, err = tx.ExecContext(within(t, patience), p.say("UPDATE report SET author = ?, written = written + 1 WHERE id = 1"), int64(rec.Token))
	require.NoError(t, err)
	require.NoError(t, tx.Commit())
	return true
}

// writes reports whether the owner of rec can write, in both forms.
func (p *place) writes(t testing.TB, db *sql.DB, store guarded, name string, rec kv.Record) bool {
	t.Helper()
	alone := p.writesAlone(t, db, store, name, rec)
	inside := p.writesInside(t, db, store, name, rec)
	require.Equal(t, alone, inside, "a statement and a transaction come to the same")
	if alone {
		require.Equal(t, rec.Token, p.author(t))
	}
	return alone
}

// TestALeaderThatSleptBeyondItsTermIsRefused has the leader do nothing until another
// leads, as it would in its sleep. Then it goes on with what it was about to write.
func TestALeaderThatSleptBeyondItsTermIsRefused(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		p.reports(t)
		db := p.open(t, "")
		p.both(t, func(t *testing.T, store guarded) {
			name := named()
			old, err := store.Create(within(t, patience), name, mortal(600*time.Millisecond))
			require.NoError(t, err)
			where, args := store.Condition(name, old, 2) // it falls asleep here
			term := elected(t, store, name)
			require.Greater(t, term.Token(), old.Token)
			require.True(t, p.writes(t, db, store, name, term.Record()))
			result, err := db.ExecContext(within(t, patience), p.say("UPDATE report SET author = ?, written = written + 1 WHERE id = ? AND ")+where,
				append([]any{int64(old.Token), 1}, args...)...)
			require.NoError(t, err)
			n, err := result.RowsAffected()
			require.NoError(t, err)
			require.Zero(t, n, "the old leader has written")
			require.False(t, p.writes(t, db, store, name, old), "the old leader has written")
			require.Equal(t, term.Token(), p.author(t))
		})
	})
}

// elected campaigns until it leads.
func elected(t testing.TB, store kv.Store, name string) *election.Term {
	t.Helper()
	c, err := election.New(store, name, &election.Options{TTL: 30 * time.Second, NoHeir: true}) // it writes nothing more
	require.NoError(t, err)
	term, err := c.Campaign(within(t, patience))
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = term.Resign(ctx) // it may have been lost
	})
	return term
}

func TestAGuardHoldsForTheOwnerAlone(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		p.reports(t)
		db := p.open(t, "")
		p.both(t, func(t *testing.T, store guarded) {
			name, rec := held(t, store)
			require.True(t, p.writes(t, db, store, name, rec))
			next := rec
			next.Value = "published since"
			now, err := store.Swap(within(t, patience), name, rec, next)
			require.NoError(t, err)
			_, err = store.Refresh(within(t, patience), name, rec)
			require.NoError(t, err)
			require.True(t, p.writes(t, db, store, name, rec), "what was published since changes nothing")
			require.True(t, p.writes(t, db, store, name, now))

			heir, err := store.Swap(within(t, patience), name, now, signed("the heir"))
			require.NoError(t, err)
			require.False(t, p.writes(t, db, store, name, now))
			require.True(t, p.writes(t, db, store, name, heir))
			require.NoError(t, store.Delete(within(t, patience), name, heir))
			require.False(t, p.writes(t, db, store, name, heir))

			// The same signature, as it comes in again with a create that was late.
			again, err := store.Create(within(t, patience), name, heir)
			require.NoError(t, err)
			require.False(t, p.writes(t, db, store, name, heir))
			require.True(t, p.writes(t, db, store, name, again))
			p.put(t, name, "somebody")
			require.False(t, p.writes(t, db, store, name, again))
			p.remove(t, name)
			require.False(t, p.writes(t, db, store, name, again))
		})
	})
}

func TestAGuardNeverHoldsForNothing(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		p.reports(t)
		db := p.open(t, "")
		p.both(t, func(t *testing.T, store guarded) {
			name, rec := held(t, store)
			foreign := rec
			foreign.Foreign = true
			untokened := rec
			untokened.Token = 0
			for what, other := range map[string]kv.Record{"nothing": {}, "foreign": foreign, "no token": untokened} {
				for _, name := range []string{name, "vacant", "", "\x00"} {
					require.False(t, p.writesAlone(t, db, store, name, other), what)
					tx, err := db.BeginTx(within(t, patience), nil)
					require.NoError(t, err)
					require.Error(t, store.Guard(within(t, patience), tx, name, other), what)
					require.NoError(t, tx.Rollback())
				}
			}
			require.False(t, p.writes(t, db, store, "vacant", rec))
		})
	})
}

// forms are the two ways to ask for a guard in a transaction.
func (p *place) forms(t testing.TB, store guarded) map[string]func(*sql.Tx, string, kv.Record) error {
	return map[string]func(*sql.Tx, string, kv.Record) error{
		"a check": func(tx *sql.Tx, name string, rec kv.Record) error {
			return store.Guard(within(t, patience), tx, name, rec)
		},
		"a statement": func(tx *sql.Tx, name string, rec kv.Record) error {
			return p.conditionally(t, tx, store, name, rec)
		},
	}
}

// begin begins a transaction at the level at which MySQL locks nothing of what a
// statement merely reads, unless it is told to.
func (p *place) begin(t testing.TB, db *sql.DB) (*sql.Tx, error) {
	t.Helper()
	if p.dialect == sqlkv.SQLite {
		return db.BeginTx(within(t, patience), nil)
	}
	return db.BeginTx(within(t, patience), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
}

func TestNobodyTakesOverBetweenTheCheckAndTheCommit(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		p.reports(t)
		db := p.open(t, "")
		p.both(t, func(t *testing.T, store guarded) {
			for form, guard := range p.forms(t, store) {
				name, rec := held(t, store)
				tx, err := p.begin(t, db)
				require.NoError(t, err)
				require.NoError(t, guard(tx, name, rec), form)
				_, err = store.Swap(within(t, 300*time.Millisecond), name, rec, signed("usurper"))
				require.ErrorIs(t, err, context.DeadlineExceeded, "%s: a takeover before the commit", form)
				require.NotErrorIs(t, err, kv.ErrStale)
				require.NoError(t, tx.Commit())
				p.passesOn(t, store, name, rec)
				require.False(t, p.writes(t, db, store, name, rec))
			}
		})
	})
}

// TestNobodyTakesAnExpiredSafeBeforeTheCommit has the record expire within its
// leader's transaction, while others knock.
func TestNobodyTakesAnExpiredSafeBeforeTheCommit(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		p.reports(t)
		db := p.open(t, "")
		p.both(t, func(t *testing.T, store guarded) {
			for form, guard := range p.forms(t, store) {
				name, rec, tx := p.guardedInTime(t, db, store, guard)
				ctx := within(t, 2*rec.TTL)
				for ctx.Err() == nil {
					_, err := store.Create(ctx, name, signed("the next"))
					require.Error(t, err, "%s: a takeover before the commit", form)
					time.Sleep(10 * time.Millisecond)
				}
				require.NoError(t, tx.Commit())
				p.passesOn(t, store, name, rec)
			}
		})
	})
}

// passesOn requires that the safe comes to another owner, by a takeover, or by one
// that was given up while it waited and is carried out all the same.
func (p *place) passesOn(t testing.TB, store guarded, name string, rec kv.Record) {
	t.Helper()
	require.Eventually(t, func() bool {
		now, err := store.Get(within(t, patience), name)
		switch {
		case errors.Is(err, kv.ErrVacant):
			_, err = store.Create(within(t, patience), name, signed("the next"))
		case err == nil && now.Owns(rec):
			_, err = store.Swap(within(t, patience), name, now, signed("the next"))
		}
		return err == nil && now.Token > rec.Token
	}, patience, 20*time.Millisecond)
}

// guardedInTime returns a transaction that was guarded before the record of the
// safe, which lives for 800 ms or what a busy machine needs, had expired.
func (p *place) guardedInTime(t testing.TB, db *sql.DB, store guarded, guard func(*sql.Tx, string, kv.Record) error) (string, kv.Record, *sql.Tx) {
	for life := 800 * time.Millisecond; ; life *= 2 {
		require.Less(t, life, 10*time.Second, "this machine is too busy to guard a record before it is over")
		name := named()
		rec, err := store.Create(within(t, patience), name, mortal(life))
		require.NoError(t, err)
		tx, err := p.begin(t, db)
		require.NoError(t, err)
		if err = guard(tx, name, rec); err == nil {
			return name, rec, tx
		}
		require.ErrorIs(t, err, kv.ErrStale)
		require.NoError(t, tx.Rollback())
	}
}

// conditionally has the transaction write by a statement, and returns ErrStale if
// that does nothing.
func (p *place) conditionally(t testing.TB, tx *sql.Tx, store guarded, name string, rec kv.Record) error {
	where, args := store.Condition(name, rec, 0)
	result, err := tx.ExecContext(within(t, patience), "UPDATE report SET author = author + 1 WHERE "+where, args...)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return errors.Join(kv.ErrStale, err)
	}
	return nil
}

// TestInPostgreSQLAGuardedTransactionHoldsNoRefreshUp says what the documentation
// promises: the leader of a long transaction stays leader.
func TestInPostgreSQLAGuardedTransactionHoldsNoRefreshUp(t *testing.T) {
	t.Parallel()
	p := inPostgres(t, testenv.Postgres(t))
	p.both(t, func(t *testing.T, store guarded) {
		name, rec := held(t, store)
		db := p.open(t, "")
		for _, level := range []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable} {
			tx, err := db.BeginTx(within(t, patience), &sql.TxOptions{Isolation: level})
			require.NoError(t, err)
			require.NoError(t, store.Guard(within(t, patience), tx, name, rec))
			for range 3 {
				rec, err = store.Refresh(within(t, patience), name, rec)
				require.NoError(t, err)
			}
			next := rec
			next.Value = "published in between"
			rec, err = store.Swap(within(t, patience), name, rec, next)
			require.NoError(t, err)
			require.NoError(t, tx.Commit())
		}
	})
}

// TestAGuardInASnapshotIsNoOlderThanItsCommit has the safe change hands after the
// transaction's snapshot was taken: what it sees is past.
func TestAGuardInASnapshotIsNoOlderThanItsCommit(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		p.reports(t)
		db := p.open(t, "")
		p.both(t, func(t *testing.T, store guarded) {
			level := sql.LevelRepeatableRead
			if p.dialect == sqlkv.SQLite {
				level = sql.LevelDefault
			}
			for form, guard := range p.forms(t, store) {
				name, rec := held(t, store)
				tx, err := db.BeginTx(within(t, patience), &sql.TxOptions{Isolation: level})
				require.NoError(t, err)
				var author int64
				require.NoError(t, tx.QueryRowContext(within(t, patience), "SELECT author FROM report").Scan(&author))
				_, err = store.Swap(within(t, patience), name, rec, signed("usurper"))
				require.NoError(t, err)
				require.Error(t, guard(tx, name, rec), "%s: it saw what was true when the transaction began", form)
				require.NoError(t, tx.Rollback())
			}
		})
	})
}
