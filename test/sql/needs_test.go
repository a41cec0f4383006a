package sqlkv_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	sqlkv "github.com/electkv/election/backends/sql"
	"github.com/electkv/election/internal/testenv"
)

// migrate makes the table, or looks at the one that is there.
func (p *place) migrate(t testing.TB, opts *sqlkv.Options) error {
	t.Helper()
	return sqlkv.Migrate(within(t, patience), p.hand, p.dialect, opts)
}

// byHand makes the table by the statements of Migration, with something changed.
func (p *place) byHand(t testing.TB, opts *sqlkv.Options, old, with string) {
	t.Helper()
	for _, statement := range sqlkv.Migration(p.dialect, opts) {
		changed := replaced(statement, old, with)
		require.NotEqual(t, statement, changed, "nothing is changed by %q", old)
		p.do(t, changed)
	}
}

// TestATableThatTheStatementsCannotRelyOnIsRefused has tables made by hand that have
// all columns, and are usable, but in which two could own one safe, or a guard would
// hold nothing. What the error says to do makes up for it.
func TestATableThatTheStatementsCannotRelyOnIsRefused(t *testing.T) {
	type flaw struct {
		old, with string // in the statement that makes the table
		then      string // a statement after it
		want      string // in the one that mends it
	}
	wants := map[sqlkv.Dialect][]flaw{
		sqlkv.PostgreSQL: {
			{"PRIMARY KEY", "NOT NULL", "", "UNIQUE (name)"},
			{"PRIMARY KEY", "NOT NULL, EXCLUDE (name WITH =)", "", "UNIQUE (name)"},
			{"PRIMARY KEY", "NOT NULL", "CREATE INDEX ON {table} (name)", "UNIQUE (name)"},
			{"PRIMARY KEY", "NOT NULL", "CREATE UNIQUE INDEX ON {table} (name) WHERE token > 0", "UNIQUE (name)"},
			{"PRIMARY KEY", "NOT NULL", "CREATE UNIQUE INDEX ON {table} (lower(name))", "UNIQUE (name)"},
			{"UNIQUE (name, token)", "CHECK (token >= 0)", "", "UNIQUE (name, token)"},
			{"UNIQUE (name, token)", "UNIQUE (name) INCLUDE (token)", "", "UNIQUE (name, token)"},
			{"UNIQUE (name, token)", "UNIQUE (name, revision)", "", "UNIQUE (name, token)"},
			{"UNIQUE (name, token)", "CHECK (token >= 0)", "CREATE UNIQUE INDEX ON {table} (name, token) WHERE token > 0", "UNIQUE (name, token)"},
			{"UNIQUE (name, token)", "CHECK (token >= 0)", "CREATE UNIQUE INDEX ON {table} (name, token, (ttl + 1))", "UNIQUE (name, token)"},
			{"expires   timestamptz", "expires timestamptz(0)", "", "timestamptz"},
			{"expires   timestamptz", "expires timestamp", "", "timestamptz"},
		},
		sqlkv.MySQL: {
			{"PRIMARY KEY", "", "", "UNIQUE (name)"},
			{" PRIMARY KEY", ", KEY (name)", "", "UNIQUE (name)"},
			{" PRIMARY KEY", ", UNIQUE (name, token)", "", "UNIQUE (name)"},
			{" PRIMARY KEY", ", UNIQUE (expires, name)", "", "UNIQUE (name)"},
			{" PRIMARY KEY", ", UNIQUE (name(100))", "", "UNIQUE (name)"},
			{" PRIMARY KEY", ", UNIQUE (updated)", "", "UNIQUE (name)"},
			{"ENGINE = InnoDB ROW_FORMAT = DYNAMIC", "ENGINE = Aria", "", "ENGINE = InnoDB"},
			{"expires   DATETIME(6)", "expires DATETIME", "", "DATETIME(6)"},
			{"expires   DATETIME(6)", "expires TIMESTAMP(6) NULL", "", "DATETIME(6)"},
			{"token     BIGINT", "token INT", "", "BIGINT"},
			{"revision  BIGINT", "revision INT", "", "BIGINT"},
			{"ttl       BIGINT", "ttl INT", "", "BIGINT"},
		},
		sqlkv.SQLite: {
			{"PRIMARY KEY", "", "", "UNIQUE INDEX"},
			{" PRIMARY KEY", "", "CREATE INDEX one ON {table} (name)", "UNIQUE INDEX"},
			{" PRIMARY KEY", "", "CREATE UNIQUE INDEX one ON {table} (name, token)", "UNIQUE INDEX"},
			{" PRIMARY KEY", "", "CREATE UNIQUE INDEX one ON {table} (name, lower(value))", "UNIQUE INDEX"},
			{" PRIMARY KEY", "", "CREATE UNIQUE INDEX one ON {table} (name) WHERE token > 0", "UNIQUE INDEX"},
			{" PRIMARY KEY", "", "CREATE UNIQUE INDEX one ON {table} (name COLLATE NOCASE)", "UNIQUE INDEX"},
			{"expires   INTEGER", "expires VARCHAR(20)", "", "INTEGER"},
			{"expires   INTEGER", "expires TEXT", "", "INTEGER"},
			{"expires   INTEGER", "expires CLOB", "", "INTEGER"},
		},
	}
	fresh(t, func(t *testing.T, p *place) {
		for _, opts := range []*sqlkv.Options{nil, {Table: "it's \"another\""}} {
			for _, w := range wants[p.dialect] {
				p.byHand(t, opts, w.old, w.with)
				if w.then != "" {
					p.do(t, replaced(w.then, "{table}", p.identifier(opts)))
				}
				for err := p.migrate(t, opts); err != nil; err = p.migrate(t, opts) {
					require.NotEmpty(t, w.want, "%s: %v", w.with, err)
					_, mend, found := strings.Cut(err.Error(), "mend it by: ")
					require.True(t, found, "%s: %v", w.with, err)
					require.Contains(t, mend, w.want, w.with)
					p.do(t, mend)
					w.want = "" // once is enough
				}
				require.Empty(t, w.want, "it was not refused, with %s %s", w.with, w.then)
				held(t, sqlkv.New(p.hand, p.dialect, opts))
				p.do(t, "DROP TABLE "+p.identifier(opts))
			}
		}
	})
}

// identifier returns the table's name, taken from the statement that makes it.
func (p *place) identifier(opts *sqlkv.Options) string {
	_, name, _ := strings.Cut(sqlkv.Migration(p.dialect, opts)[0], "EXISTS ")
	name, _, _ = strings.Cut(name, " (\n")
	return name
}

// TestATableThatIsMadeAnotherWayIsTaken has what the statements rest on come about by
// other means than those of Migration.
func TestATableThatIsMadeAnotherWayIsTaken(t *testing.T) {
	ways := map[sqlkv.Dialect][]struct{ old, with string }{
		sqlkv.PostgreSQL: {
			{"PRIMARY KEY", "UNIQUE"},
			{"UNIQUE (name, token)", "UNIQUE (token, name)"},
			{"UNIQUE (name, token)", "extra text, UNIQUE (name, token)"},
			{"expires   timestamptz", "expires timestamptz(6)"},
			{"WITH (fillfactor = 70)", "PARTITION BY HASH (name)"},
		},
		sqlkv.MySQL: {
			{"PRIMARY KEY", "UNIQUE"},
			{" PRIMARY KEY", ", id BIGINT AUTO_INCREMENT PRIMARY KEY, UNIQUE (name)"},
			{"token     BIGINT", "token BIGINT UNSIGNED"},
		},
		sqlkv.SQLite: {
			{"PRIMARY KEY", "UNIQUE"},
			{"timens    TEXT\n)", "timens TEXT) WITHOUT ROWID"},
			{"expires   INTEGER", "expires"},
		},
	}
	fresh(t, func(t *testing.T, p *place) {
		for _, w := range ways[p.dialect] {
			p.byHand(t, nil, w.old, w.with)
			require.NoError(t, p.migrate(t, nil), w.with)
			if strings.HasPrefix(w.with, "PARTITION") {
				p.do(t, "CREATE TABLE part PARTITION OF election FOR VALUES WITH (MODULUS 1, REMAINDER 0)")
			}
			p.takesTurnsOnce(t)
			p.do(t, "DROP TABLE election")
		}
	})
}

// takesTurnsOnce has a safe be held, refused and given up.
func (p *place) takesTurnsOnce(t testing.TB) {
	t.Helper()
	store := sqlkv.New(p.hand, p.dialect, nil)
	name, rec := held(t, store)
	_, err := store.Create(within(t, patience), name, signed("v"))
	require.Error(t, err)
	require.NoError(t, store.Delete(within(t, patience), name, rec))
}

// TestAnIndexThatCouldNotBeMadeIsNone has PostgreSQL leave one that is not valid.
func TestAnIndexThatCouldNotBeMadeIsNone(t *testing.T) {
	t.Parallel()
	p := inPostgres(t, testenv.Postgres(t))
	p.do(t, "DROP TABLE election")
	p.byHand(t, nil, "PRIMARY KEY", "NOT NULL")
	p.do(t, "INSERT INTO election (name, token) VALUES ('twice', 1), ('twice', 2)")
	_, err := p.hand.ExecContext(within(t, patience), "CREATE UNIQUE INDEX CONCURRENTLY one ON election (name)")
	require.ErrorContains(t, err, "23505")
	require.ErrorContains(t, p.migrate(t, nil), "UNIQUE (name)")
	p.do(t, "DELETE FROM election")
	p.do(t, "REINDEX INDEX one")
	require.NoError(t, p.migrate(t, nil))
}

// TestWhoMayUseTheTableAloneMayLookAtIt has a user of MariaDB who may read and write
// rows, and make no table.
func TestWhoMayUseTheTableAloneMayLookAtIt(t *testing.T) {
	t.Parallel()
	p := inMariaDB(t, testenv.MariaDB(t))
	user := "clerk" + strings.ToLower(named()[5:17])
	p.do(t, "CREATE USER "+user)
	t.Cleanup(func() { p.do(t, "DROP USER "+user) })
	p.do(t, "GRANT SELECT, INSERT, UPDATE ON election TO "+user)
	clerk := *p
	clerk.source = replaced(p.source, testenv.MySQLUser+"@", user+"@")
	clerk.hand = clerk.open(t, "")
	require.NoError(t, clerk.migrate(t, nil))
	held(t, clerk.store(t))
	p.do(t, "ALTER TABLE election DROP PRIMARY KEY")
	require.ErrorContains(t, clerk.migrate(t, nil), "UNIQUE (name)")
}

// TestTwoRowsOfANameAreNotOneSafe has them where nothing keeps them from being. It is
// an error to look at them, and not one of the two that is taken for the safe.
func TestTwoRowsOfANameAreNotOneSafe(t *testing.T) {
	fresh(t, func(t *testing.T, p *place) {
		p.byHand(t, nil, " PRIMARY KEY", "")
		p.do(t, "INSERT INTO election (name, token) VALUES (?, 1)", "twice")
		p.do(t, "INSERT INTO election (name, token) VALUES (?, 2)", "twice")
		_, err := p.store(t).Get(within(t, patience), "twice")
		undecided(t, err, "get")
		require.ErrorContains(t, err, "several rows")
	})
}

// TestATableIsLookedAtWhereItIs has one in another schema that is as it should be,
// and one of the same name, before it, that is not.
func TestATableIsLookedAtWhereItIs(t *testing.T) {
	fresh(t, func(t *testing.T, p *place) {
		good := &sqlkv.Options{Schema: p.elsewhere(t)}
		p.byHand(t, nil, "PRIMARY KEY", "")
		require.NoError(t, p.migrate(t, good))
		require.ErrorContains(t, p.migrate(t, nil), "unique")
		p.do(t, "DROP TABLE election")
		require.NoError(t, p.migrate(t, nil))
		p.do(t, "DROP TABLE "+p.identifier(good))
		p.byHand(t, good, "PRIMARY KEY", "")
		err := p.migrate(t, good)
		require.ErrorContains(t, err, "unique")
		_, mend, _ := strings.Cut(err.Error(), "mend it by: ")
		p.do(t, mend)
		require.NoError(t, p.migrate(t, good))
		require.NoError(t, p.migrate(t, nil))
	})
}

// elsewhere makes another schema, in the words of each dialect.
func (p *place) elsewhere(t *testing.T) string {
	t.Helper()
	switch p.dialect {
	case sqlkv.PostgreSQL:
		p.do(t, "CREATE SCHEMA elsewhere")
		return "elsewhere"
	case sqlkv.MySQL:
		return testenv.NewMySQLDatabase(t, testenv.MariaDB(t))
	default:
		p.hand.SetMaxOpenConns(1) // what is attached is attached to a connection
		p.do(t, "ATTACH DATABASE '"+filepath.Join(t.TempDir(), "elsewhere.db")+"' AS elsewhere")
		return "elsewhere"
	}
}
