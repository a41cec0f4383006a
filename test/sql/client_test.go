package sqlkv_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite" // the driver "sqlite"

	sqlkv "github.com/electkv/election/backends/sql"
	"github.com/electkv/election/backends/sql/pgxdriver"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// patience is what a busy machine may add to anything that is owed.
const patience = 30 * time.Second

// A place is a database of the test's own, with the table in it.
type place struct {
	t       testing.TB
	dialect sqlkv.Dialect
	source  string // what its driver connects by
	sent    *requests
	// hand is a pool of somebody else's.
	hand *sql.DB
}

// everywhere runs a test in each dialect.
func everywhere(t *testing.T, test func(*testing.T, *place)) {
	onServers(t, test)
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		test(t, inSQLite(t))
	})
}

// onServers runs a test in the dialects that have a server. Each place is the test's
// own, and most of the tests wait, so they do it side by side.
func onServers(t *testing.T, test func(*testing.T, *place)) {
	t.Parallel()
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		test(t, inPostgres(t, testenv.Postgres(t)))
	})
	t.Run("MariaDB", func(t *testing.T) {
		t.Parallel()
		test(t, inMariaDB(t, testenv.MariaDB(t)))
	})
}

func inPostgres(t testing.TB, addr string) *place {
	return at(t, sqlkv.PostgreSQL, testenv.PostgresURL(addr, testenv.NewPostgresDatabase(t, addr)))
}

func inMariaDB(t testing.TB, addr string) *place {
	return at(t, sqlkv.MySQL, testenv.MySQLDSN(addr, testenv.NewMySQLDatabase(t, addr)))
}

// inSQLite returns a new file. As the servers of tests do, it does without fsync, which waits for
// seconds while other processes write much.
func inSQLite(t testing.TB) *place {
	return at(t, sqlkv.SQLite, "file:"+filepath.Join(t.TempDir(), "election.db")+"?_pragma=journal_mode(WAL)&_pragma=synchronous(OFF)")
}

// at makes the table.
func at(t testing.TB, dialect sqlkv.Dialect, source string) *place {
	t.Helper()
	p := &place{t: t, dialect: dialect, source: source, sent: new(requests)}
	more := ""
	if dialect == sqlkv.SQLite {
		more = "&_pragma=busy_timeout(30000)"
	}
	p.hand = p.open(t, more)
	require.NoError(t, sqlkv.Migrate(within(t, patience), p.hand, dialect, nil))
	return p
}

// open returns a pool of its own, with more in the data source's name.
func (p *place) open(t testing.TB, more string) *sql.DB {
	t.Helper()
	db := p.connect(t, p.source+more)
	db.SetMaxIdleConns(10) // a server takes long to begin a connection
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

func (p *place) connect(t testing.TB, source string) *sql.DB {
	t.Helper()
	switch p.dialect {
	case sqlkv.PostgreSQL:
		config, err := pgx.ParseConfig(source)
		require.NoError(t, err)
		config.Tracer = p.sent
		// A request is what this package sends, and no ping before it.
		return stdlib.OpenDB(*config, stdlib.OptionShouldPing(func(context.Context, stdlib.ShouldPingParams) bool { return false }))
	case sqlkv.MySQL:
		config, err := mysql.ParseDSN(source)
		require.NoError(t, err)
		config.Logger = &mysql.NopLogger{}
		connector, err := mysql.NewConnector(config)
		require.NoError(t, err)
		return sql.OpenDB(p.sent.count(connector))
	default:
		db, err := sql.Open("sqlite", source)
		require.NoError(t, err)
		connector := dialer{driver: db.Driver(), source: source}
		require.NoError(t, db.Close())
		return sql.OpenDB(p.sent.count(connector))
	}
}

// asks returns what begins or goes on a data source's parameters.
func (p *place) asks(settings string) string {
	if strings.Contains(p.source, "?") {
		return "&" + settings
	}
	return "?" + settings
}

// store returns a store on a pool of its own, whose watches look often.
func (p *place) store(t testing.TB) *sqlkv.Store {
	return sqlkv.New(p.open(t, ""), p.dialect, p.opts())
}

// opts has watches look often. Where changes are told, they look ten times less.
func (p *place) opts() *sqlkv.Options {
	if p.dialect == sqlkv.PostgreSQL {
		return &sqlkv.Options{Poll: 80 * time.Millisecond, Driver: pgxdriver.Driver{}}
	}
	return &sqlkv.Options{Poll: 600 * time.Millisecond}
}

func (p *place) observed(t testing.TB) *sqlkv.Observed {
	return sqlkv.NewObserved(p.open(t, ""), p.dialect, p.opts())
}

// both runs a test in both ways to judge expiry.
func (p *place) both(t *testing.T, test func(*testing.T, guarded)) {
	t.Run("judged by the store", func(t *testing.T) { test(t, p.store(t)) })
	t.Run("judged by observers", func(t *testing.T) { test(t, p.observed(t)) })
}

// guarded is what both kinds of stores offer.
type guarded interface {
	kv.Store
	Guard(ctx context.Context, tx *sql.Tx, name string, rec kv.Record) error
	Condition(name string, rec kv.Record, after int) (string, []any)
}

// do carries out a statement of somebody else's, with ? for each argument.
func (p *place) do(t testing.TB, statement string, args ...any) {
	t.Helper()
	_, err := p.hand.ExecContext(within(t, patience), p.say(statement), args...)
	require.NoError(t, err)
}

// say returns a statement as the dialect has it, from one with ? for arguments.
func (p *place) say(statement string) string {
	if p.dialect != sqlkv.PostgreSQL {
		return statement
	}
	parts := strings.Split(statement, "?")
	for i := range parts[1:] {
		parts[i] += fmt.Sprint("$", i+1)
	}
	return strings.Join(parts, "")
}

// put writes a row as another program does that knows nothing of ours.
func (p *place) put(t testing.TB, name, value string) {
	t.Helper()
	statement := `INSERT INTO election (name, value) VALUES (?, ?)
ON CONFLICT (name) DO UPDATE SET signature = NULL, value = EXCLUDED.value, note = NULL, expires = NULL`
	if p.dialect == sqlkv.MySQL {
		statement = `INSERT INTO election (name, value) VALUES (?, ?)
ON DUPLICATE KEY UPDATE signature = NULL, value = VALUES(value), note = NULL, expires = NULL`
	}
	p.do(t, statement, name, []byte(value))
}

// remove deletes a row as an operator does.
func (p *place) remove(t testing.TB, name string) {
	t.Helper()
	p.do(t, "DELETE FROM election WHERE name = ?", name)
}

// within returns a context with that timeout.
func within(t testing.TB, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// signed returns what a new campaign would write.
func signed(value string) kv.Record {
	return kv.Record{Signature: "sig/" + rand.Text(), Value: value, TTL: time.Hour}
}

// mortal returns what a new campaign would write, to live for d.
func mortal(d time.Duration) kv.Record {
	rec := signed("mortal")
	rec.TTL = d
	return rec
}

// named returns a name that nobody used before.
func named() string { return "safe-" + rand.Text() }

// held returns a new safe and its record.
func held(t testing.TB, store kv.Store) (string, kv.Record) {
	t.Helper()
	name := named()
	rec, err := store.Create(within(t, patience), name, signed("held"))
	require.NoError(t, err)
	return name, rec
}

// holds requires that the safe holds exactly rec.
func holds(t testing.TB, store kv.Store, name string, rec kv.Record) {
	t.Helper()
	got, err := store.Get(within(t, patience), name)
	require.NoError(t, err)
	require.Equal(t, rec, got)
}
