package sqlkv_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	sqlkv "github.com/electkv/election/backends/sql"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvtest"
)

// hold creates so many records.
func hold(t testing.TB, store kv.Store, n int) []kv.Held {
	t.Helper()
	records := make([]kv.Held, n)
	for i := range records {
		records[i].Name, records[i].Record = held(t, store)
	}
	return records
}

// expires returns when the store takes a record for expired, as a text that grows with
// time; empty if it never does, or if there is no row.
func (p *place) expires(t testing.TB, name string) string {
	t.Helper()
	if !utf8.ValidString(name) { // no row has it, and PostgreSQL takes it for an error
		return ""
	}
	var at sql.NullString
	err := p.hand.QueryRowContext(within(t, patience), p.say("SELECT CAST(expires AS CHAR(40)) FROM election WHERE name = ?"), name).Scan(&at)
	require.NoError(t, ignore(err, sql.ErrNoRows))
	if p.dialect == sqlkv.SQLite && at.Valid { // a number, which gets a digit more now and then
		return strings.Repeat("0", 20-len(at.String)) + at.String
	}
	return at.String
}

// shorten has every record expire sooner.
func (p *place) shorten(t testing.TB) {
	t.Helper()
	p.do(t, "UPDATE election SET expires = "+map[sqlkv.Dialect]string{
		sqlkv.PostgreSQL: "expires - INTERVAL '30 seconds'",
		sqlkv.MySQL:      "expires - INTERVAL 30 SECOND",
		sqlkv.SQLite:     "expires - 30000000000",
	}[p.dialect]+" WHERE expires IS NOT NULL")
}

func TestEachOfManyRecordsIsToldWhatARefreshOfItSays(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		store := p.store(t)
		ctx := within(t, patience)
		var records []kv.Held
		want := make(map[string]error)
		add := func(h kv.Held, err error) { records, want[h.Name] = append(records, h), err }
		own := func(what string, rec kv.Record) kv.Held {
			name := named() + what
			rec, err := store.Create(ctx, name, rec)
			require.NoError(t, err)
			return kv.Held{Name: name, Record: rec}
		}
		for i := range 3 {
			add(own(fmt.Sprint("own", i), signed("v")), nil)
		}
		odd := signed("\x00\xff'\\")
		odd.Signature, odd.Note = "<s>&\u2028\"\\\n\x7fключ", "<n>\u2029\t"
		add(own(" <o>&\"'\\\n\u2028 ключ %", odd), nil)
		add(own(strings.Repeat("n", 900), signed("v")), nil)
		add(own("large", signed(strings.Repeat("v", 100_000))), nil)
		last := own("nearly over", mortal(time.Second))
		add(last, nil)

		gone := own("deleted", signed("v"))
		require.NoError(t, store.Delete(ctx, gone.Name, gone.Record))
		add(gone, kv.ErrStale)
		removed := own("removed", signed("v"))
		p.remove(t, removed.Name)
		add(removed, kv.ErrStale)
		taken := own("taken", signed("v"))
		heir, err := store.Swap(ctx, taken.Name, taken.Record, signed("w"))
		require.NoError(t, err)
		add(taken, kv.ErrStale)
		late := own("another token", signed("v"))
		require.NoError(t, store.Delete(ctx, late.Name, late.Record))
		_, err = store.Create(ctx, late.Name, late.Record)
		require.NoError(t, err)
		add(late, kv.ErrStale)
		foreign := own("foreign", signed("v"))
		p.put(t, foreign.Name, "maintenance")
		add(foreign, kv.ErrStale)
		over := own("expired", signed("v"))
		p.expire(t, over.Name)
		add(over, kv.ErrStale)

		published := own("published", signed("v"))
		next := published.Record
		next.Value = "another value"
		next, err = store.Swap(ctx, published.Name, published.Record, next)
		require.NoError(t, err)
		add(published, nil)
		add(kv.Held{Name: "", Record: signed("v")}, kv.ErrInvalid)
		add(kv.Held{Name: "\xff", Record: signed("v")}, kv.ErrInvalid)
		add(kv.Held{Name: named(), Record: kv.Record{Value: "v", Foreign: true}}, kv.ErrInvalid)
		add(kv.Held{Name: named(), Record: kv.Record{Signature: "s", TTL: time.Minute}}, kv.ErrStale)

		before := make(map[string]string)
		for _, h := range records {
			before[h.Name] = p.expires(t, h.Name)
		}
		for i, v := range kvtest.RefreshAll(t, ctx, store, records) {
			h := records[i]
			if h.Name == last.Name && errors.Is(v.Err, kv.ErrStale) {
				continue // the machine was too slow
			}
			if err := want[h.Name]; err != nil {
				require.ErrorIs(t, v.Err, err, h.Name)
				require.Equal(t, before[h.Name], p.expires(t, h.Name), h.Name)
				_, single := store.Refresh(ctx, h.Name, h.Record)
				require.Equal(t, single.Error(), v.Err.Error())
				require.Zero(t, v.Record)
				continue
			}
			require.NoError(t, v.Err, h.Name)
			require.Greater(t, p.expires(t, h.Name), before[h.Name], h.Name)
			rec := h.Record
			if h.Name == published.Name {
				rec = next
			}
			require.Equal(t, rec, v.Record, h.Name)
			if h.Name != last.Name {
				holds(t, store, h.Name, rec)
			}
		}
		holds(t, store, taken.Name, heir)
		got, err := store.Get(ctx, foreign.Name)
		require.NoError(t, err)
		require.Equal(t, "maintenance", got.Value)
		require.True(t, got.Permanent)
		for _, name := range []string{gone.Name, removed.Name, over.Name} {
			_, err = store.Get(ctx, name)
			require.ErrorIs(t, err, kv.ErrVacant)
		}
	})
}

func TestNoRecordsAreRefreshedWithoutAStatement(t *testing.T) {
	p := inSQLite(t)
	store := p.store(t)
	before := p.sent.Load()
	require.Empty(t, kvtest.RefreshAll(t, within(t, patience), store, nil))
	require.Equal(t, before, p.sent.Load())
}

func TestManyRecordsAreRefreshedByFewStatements(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		store := p.store(t)
		records := hold(t, store, 250)
		p.shorten(t)
		at := make([]string, len(records))
		for i, h := range records {
			at[i] = p.expires(t, h.Name)
		}
		before := p.sent.Load()
		told := kvtest.RefreshAll(t, within(t, patience), store, records)
		want := map[sqlkv.Dialect]int64{sqlkv.PostgreSQL: 3, sqlkv.MySQL: 6, sqlkv.SQLite: 12}[p.dialect] // with BEGIN, lock and COMMIT
		require.Equal(t, want, p.sent.Load()-before)
		for i, v := range told {
			require.NoError(t, v.Err)
			require.Equal(t, records[i].Record, v.Record)
			require.Greater(t, p.expires(t, records[i].Name), at[i])
		}
	})
}

// TestARowThatIsLockedHoldsUpNoRecordButItsOwn has somebody else's transaction hold rows
// of two statements.
func TestARowThatIsLockedHoldsUpNoRecordButItsOwn(t *testing.T) {
	onServers(t, func(t *testing.T, p *place) {
		store := p.store(t)
		records := hold(t, store, 150)
		locked := map[string]bool{records[0].Name: true, records[149].Name: true}
		for name := range locked {
			defer p.lock(t, name)()
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		var mu sync.Mutex
		left, before := len(records)-len(locked), p.sent.Load()
		store.RefreshAll(ctx, records, func(i int, rec kv.Record, err error) {
			mu.Lock()
			defer mu.Unlock()
			if locked[records[i].Name] {
				require.ErrorIs(t, err, context.Canceled)
				undecided(t, err, "refresh")
				return
			}
			require.NoError(t, err)
			require.Equal(t, records[i].Record, rec)
			if left--; left == 0 {
				cancel() // all others have been told
			}
		})
		require.Zero(t, left)
		require.Less(t, p.sent.Load()-before, int64(50), "the others were not refreshed one by one")
	})
}

// TestARowThatIsLockedForAWhileIsRefreshedAfterThat has the lock end meanwhile.
func TestARowThatIsLockedForAWhileIsRefreshedAfterThat(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		store := p.store(t)
		records := hold(t, store, 3)
		letGo := p.lock(t, records[1].Name)
		ctx, told := within(t, patience), make([]kvtest.Verdict, len(records))
		done := make(chan struct{})
		go func() {
			defer close(done)
			store.RefreshAll(ctx, records, func(i int, rec kv.Record, err error) { told[i] = kvtest.Verdict{Record: rec, Err: err} })
		}()
		time.Sleep(300 * time.Millisecond)
		letGo()
		<-done
		for i, v := range told {
			require.NoError(t, v.Err)
			require.Equal(t, records[i].Record, v.Record)
		}
	})
}

// TestBatchesOfSeveralProcessesAreNotInEachOthersWay has batches of the same rows, in
// different orders, at each isolation level.
func TestBatchesOfSeveralProcessesAreNotInEachOthersWay(t *testing.T) {
	onServers(t, func(t *testing.T, p *place) {
		records := hold(t, p.store(t), 250)
		for _, level := range []string{"read committed", "repeatable read", "serializable"} {
			t.Run(level, func(t *testing.T) {
				var going sync.WaitGroup
				for k := range 3 {
					store := sqlkv.New(p.open(t, p.asks(p.isolation(level))), p.dialect, p.opts())
					mine := append(records[k*80:len(records):len(records)], records[:k*80]...)
					going.Go(func() {
						for range 3 {
							store.RefreshAll(within(t, patience), mine, func(i int, rec kv.Record, err error) {
								if err != nil || rec != mine[i].Record {
									t.Errorf("%s: %v, %v", mine[i].Name, rec, err)
								}
							})
						}
					})
				}
				going.Wait()
			})
		}
	})
}

func TestManyRecordsAreToldOfTheEndOfTheContext(t *testing.T) {
	everywhere(t, func(t *testing.T, p *place) {
		store := p.store(t)
		records := hold(t, store, 120)
		why := errors.New("the caller thought better of it")
		ended, cancel := context.WithCancelCause(context.Background())
		cancel(why)
		for _, v := range kvtest.RefreshAll(t, ended, store, records) {
			require.ErrorIs(t, v.Err, why)
			undecided(t, v.Err, "refresh")
		}
		defer p.lockAll(t)()
		start := time.Now()
		for _, v := range kvtest.RefreshAll(t, within(t, 200*time.Millisecond), store, records) {
			require.ErrorIs(t, v.Err, context.DeadlineExceeded)
			undecided(t, v.Err, "refresh")
		}
		require.Less(t, time.Since(start), patience/3)
	})
}

// lockAll has somebody else's transaction hold every row, until it is let go.
func (p *place) lockAll(t testing.TB) (letGo func()) {
	t.Helper()
	if p.dialect == sqlkv.SQLite {
		return p.lock(t, "")
	}
	tx, err := p.hand.BeginTx(context.Background(), nil)
	require.NoError(t, err)
	_, err = tx.ExecContext(within(t, patience), "UPDATE election SET updated = updated + INTERVAL '1' SECOND")
	require.NoError(t, err)
	return func() { require.NoError(t, tx.Rollback()) }
}

// TestAServerThatIsReadOnlyRefreshesNoneOfMany has a batch be refused.
func TestAServerThatIsReadOnlyRefreshesNoneOfMany(t *testing.T) {
	t.Parallel()
	p := inPostgres(t, testenv.Postgres(t))
	records := hold(t, p.store(t), 3)
	store := sqlkv.New(p.open(t, p.asks("default_transaction_read_only=on")), p.dialect, p.opts())
	before := p.sent.Load()
	for _, v := range kvtest.RefreshAll(t, within(t, patience), store, records) {
		undecided(t, v.Err, "refresh")
	}
	require.Equal(t, before+1, p.sent.Load(), "what refuses all is not asked for each")
}

// TestInMySQLASessionThatNeverCommitsRefreshesNoneOfMany has autocommit off.
func TestInMySQLASessionThatNeverCommitsRefreshesNoneOfMany(t *testing.T) {
	t.Parallel()
	p := inMariaDB(t, testenv.MariaDB(t))
	records := hold(t, p.store(t), 3)
	store := sqlkv.New(p.open(t, p.asks("autocommit=0")), p.dialect, p.opts())
	for _, v := range kvtest.RefreshAll(t, within(t, patience), store, records) {
		undecided(t, v.Err, "refresh")
		require.ErrorContains(t, v.Err, "autocommit")
	}
}

// TestANameThatAListCannotHaveHoldsUpNoOtherRecord has a database of an encoding into
// which PostgreSQL cannot turn what JSON writes as an escape.
func TestANameThatAListCannotHaveHoldsUpNoOtherRecord(t *testing.T) {
	t.Parallel()
	addr := testenv.Postgres(t)
	latin := "latin_" + strings.ToLower(named()[5:])
	elsewhere := inPostgres(t, addr)
	elsewhere.do(t, "CREATE DATABASE "+latin+" ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0")
	t.Cleanup(func() { elsewhere.do(t, "DROP DATABASE "+latin+" WITH (FORCE)") })
	p := at(t, sqlkv.PostgreSQL, testenv.PostgresURL(addr, latin))
	store := p.store(t)
	records := hold(t, store, 3)
	rec, err := store.Create(within(t, patience), "a\u2028b", signed("v"))
	require.NoError(t, err)
	records = append(records, kv.Held{Name: "a\u2028b", Record: rec})
	before := p.sent.Load()
	for i, v := range kvtest.RefreshAll(t, within(t, patience), store, records) {
		require.NoError(t, v.Err)
		require.Equal(t, records[i].Record, v.Record)
	}
	require.Equal(t, before+5, p.sent.Load(), "the list was refused, so each goes by itself")
}

// TestARowThatTheServerRefusesToChangeHoldsUpNoOtherRecord has a constraint refuse it.
func TestARowThatTheServerRefusesToChangeHoldsUpNoOtherRecord(t *testing.T) {
	t.Parallel()
	p := inMariaDB(t, testenv.MariaDB(t))
	store := p.store(t)
	records := hold(t, store, 3)
	p.do(t, "ALTER TABLE election ADD CONSTRAINT closed CHECK (name <> '"+records[1].Name+
		"' OR expires <= '"+p.expires(t, records[1].Name)+"')")
	told := kvtest.RefreshAll(t, within(t, patience), store, records)
	for _, i := range []int{0, 2} {
		require.NoError(t, told[i].Err)
		require.Equal(t, records[i].Record, told[i].Record)
	}
	undecided(t, told[1].Err, "refresh")
}
