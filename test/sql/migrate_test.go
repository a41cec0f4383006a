package sqlkv_test

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	sqlkv "github.com/electkv/election/backends/sql"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// fresh returns databases without a table.
func fresh(t *testing.T, test func(*testing.T, *place)) {
	t.Parallel()
	for dialect, source := range map[sqlkv.Dialect]func(*testing.T) string{
		sqlkv.PostgreSQL: func(t *testing.T) string {
			addr := testenv.Postgres(t)
			return testenv.PostgresURL(addr, testenv.NewPostgresDatabase(t, addr))
		},
		sqlkv.MySQL: func(t *testing.T) string {
			addr := testenv.MariaDB(t)
			return testenv.MySQLDSN(addr, testenv.NewMySQLDatabase(t, addr))
		},
		sqlkv.SQLite: func(t *testing.T) string {
			return "file:" + filepath.Join(t.TempDir(), "election.db") + "?_pragma=synchronous(OFF)"
		},
	} {
		t.Run(dialect.String(), func(t *testing.T) {
			p := &place{t: t, dialect: dialect, source: source(t), sent: new(requests)}
			p.hand = p.open(t, "")
			test(t, p)
		})
	}
}

func TestManyProcessesMayMakeTheTableAtOnce(t *testing.T) {
	fresh(t, func(t *testing.T, p *place) {
		for _, opts := range []*sqlkv.Options{nil, {Table: "another"}, {Table: `ödd "name" with ` + "`quotes`"}} {
			var all sync.WaitGroup
			start := make(chan struct{})
			for range 8 {
				db := p.open(t, "")
				all.Go(func() {
					<-start
					if err := sqlkv.Migrate(within(t, patience), db, p.dialect, opts); err != nil {
						t.Errorf("%v", err)
					}
				})
			}
			close(start)
			all.Wait()
			store := sqlkv.New(p.hand, p.dialect, opts)
			name, rec := held(t, store)
			require.NoError(t, sqlkv.Migrate(within(t, patience), p.hand, p.dialect, opts), "once more")
			holds(t, store, name, rec)
		}
	})
}

func TestATableThatIsMissingIsAnErrorThatSaysHowToMakeIt(t *testing.T) {
	fresh(t, func(t *testing.T, p *place) {
		store := sqlkv.New(p.hand, p.dialect, nil)
		_, err := store.Create(within(t, patience), named(), signed("v"))
		undecided(t, err, "create")
		require.ErrorContains(t, err, "sqlkv.Migrate")
		require.ErrorContains(t, err, "the table election")
		for _, err := range sqlkv.NewObserved(p.hand, p.dialect, nil).Watch(within(t, patience), named()) {
			require.ErrorContains(t, err, "sqlkv.Migrate")
		}
		for _, statement := range append(sqlkv.Migration(p.dialect, nil), sqlkv.Migration(p.dialect, nil)...) {
			_, err := p.hand.ExecContext(within(t, patience), statement)
			require.NoError(t, err, "by hand")
		}
		held(t, store)
	})
}

func TestATableOfAnotherProgramIsLeftAlone(t *testing.T) {
	fresh(t, func(t *testing.T, p *place) {
		p.do(t, "CREATE TABLE election (name VARCHAR(10), votes INTEGER)")
		err := sqlkv.Migrate(within(t, patience), p.hand, p.dialect, nil)
		require.ErrorContains(t, err, "election")
		p.do(t, "INSERT INTO election (name, votes) VALUES ('x', 1)")
	})
}

// TestWhoMayNotMakeTablesMayUseOne has a role that may read and write rows alone.
func TestWhoMayNotMakeTablesMayUseOne(t *testing.T) {
	t.Parallel()
	addr := testenv.Postgres(t)
	p := inPostgres(t, addr)
	role := "clerk_" + replaced(named(), "safe-", "")
	p.do(t, `CREATE ROLE "`+role+`" LOGIN`)
	t.Cleanup(func() { p.do(t, `DROP OWNED BY "`+role+`"`); p.do(t, `DROP ROLE "`+role+`"`) })
	p.do(t, `CREATE SCHEMA private`)
	p.do(t, `GRANT SELECT, INSERT, UPDATE ON election TO "`+role+`"`)
	clerk := *p
	clerk.source = replaced(p.source, "postgres@", role+"@")
	db := clerk.open(t, "")
	require.NoError(t, sqlkv.Migrate(within(t, patience), db, p.dialect, nil))
	store := sqlkv.New(db, p.dialect, nil)
	name, rec := held(t, store)
	_, err := store.Refresh(within(t, patience), name, rec)
	require.NoError(t, err)
	require.NoError(t, store.Delete(within(t, patience), name, rec))

	elsewhere := &sqlkv.Options{Schema: "private", Table: "safes"}
	require.Error(t, sqlkv.Migrate(within(t, patience), db, p.dialect, elsewhere))
	require.NoError(t, sqlkv.Migrate(within(t, patience), p.hand, p.dialect, elsewhere))
	held(t, sqlkv.New(p.hand, p.dialect, elsewhere))
}

func TestWhatCannotBeIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	p := inSQLite(t)
	for what, store := range map[string]kv.Store{
		"no database":    sqlkv.New(nil, sqlkv.SQLite, nil),
		"no dialect":     sqlkv.New(p.hand, 0, nil),
		"a long table":   sqlkv.New(p.hand, sqlkv.SQLite, &sqlkv.Options{Table: string(make([]byte, 64))}),
		"an odd table":   sqlkv.New(p.hand, sqlkv.SQLite, &sqlkv.Options{Table: "a:b"}),
		"an odd schema":  sqlkv.New(p.hand, sqlkv.SQLite, &sqlkv.Options{Schema: "{table}"}),
		"none, observed": sqlkv.NewObserved(nil, sqlkv.SQLite, nil),
	} {
		_, err := store.Get(within(t, patience), "jobs")
		require.ErrorIs(t, err, kv.ErrInvalid, what)
		_, err = store.Lifetime(ttl)
		require.ErrorIs(t, err, kv.ErrInvalid, what)
		_, err = store.Create(within(t, patience), "jobs", signed("v"))
		require.ErrorIs(t, err, kv.ErrInvalid, what)
	}
	require.ErrorIs(t, sqlkv.Migrate(within(t, patience), nil, sqlkv.SQLite, nil), kv.ErrInvalid)
}
