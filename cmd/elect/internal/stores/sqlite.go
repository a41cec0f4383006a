package stores

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"modernc.org/sqlite"

	sqlkv "github.com/electkv/election/backends/sql"
	"github.com/electkv/election/internal/localfs"
)

func sqliteKind() kind {
	return kind{
		name: "sqlite", form: "sqlite:///file", params: []string{"table", expiryParam, fileSystemParam}, parse: parseSQLite,
		help:       [][2]string{{"sqlite:///file", "processes of one host"}},
		refuses:    func(err error) bool { return sqliteRefusal(err).forGood() },
		releasable: true,
	}
}

func parseSQLite(l *location) (opener, error) {
	if len(l.hosts) > 0 || l.user != "" {
		return nil, errors.New("a file has no host: write three slashes")
	}
	if !filepath.IsAbs(l.path) {
		return nil, errors.New("the file is not an absolute path")
	}
	file := filepath.Clean(l.path)
	// A connection waits a while for others that write, rather than fail at once.
	name := (&url.URL{Scheme: "file", Path: file, RawQuery: "_pragma=busy_timeout(250)"}).String()
	options := sqlkv.Options{Table: l.query.Get("table")}
	connector, err := sqlite.NewConnector(name)
	if err != nil {
		return nil, err
	}
	open, err := l.inDatabase(sqliteDialect(), options, connector, file)
	if err != nil {
		return nil, err
	}
	reader, err := sqlite.NewConnector(name + "&mode=ro")
	if err != nil {
		return nil, err
	}
	read, err := l.inDatabase(sqliteDialect(), options, reader, file)
	if err != nil {
		return nil, err
	}
	if err := l.oneOf(fileSystemParam, anyFileSystem); err != nil {
		return nil, err
	}
	return func(ctx context.Context, how purpose) (*Store, error) {
		if err := l.checkFS(filepath.Dir(file)); err != nil {
			return nil, err
		}
		if how.reading {
			return read(ctx, how)
		}
		return open(ctx, how)
	}, nil
}

// checkFS refuses a folder that another kernel may have mounted too: locks on the
// database's file, by which its writers take turns, would be in vain.
func (l *location) checkFS(folder string) error {
	if l.query.Has(fileSystemParam) {
		return nil
	}
	kind, err := localfs.Of(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the database has its own words for it
	}
	if err != nil {
		return err
	}
	return kind.Refusal("insist by filesystem=any in the URL")
}

func sqliteDialect() dialect {
	return dialect{Dialect: sqlkv.SQLite, mark: `"`, place: "?", key: asText, refusal: sqliteRefusal, examine: examineSQLite}
}

func sqliteRefusal(err error) refusal {
	if e, ok := errors.AsType[interface {
		error
		Code() int
	}](err); ok {
		switch e.Code() & 0xff { // without what an extended code adds
		case 3, 8: // SQLITE_PERM, SQLITE_READONLY
			return denied
		case 5: // SQLITE_BUSY
			return busy
		case 14: // SQLITE_CANTOPEN
			return noFile
		case 1: // SQLITE_ERROR, which is all that is wrong with a statement
			switch {
			case strings.Contains(e.Error(), "no such column"):
				return noColumn
			case strings.Contains(e.Error(), "no such table"):
				return noTable
			}
		}
	}
	return 0
}

func examineSQLite(ctx context.Context, db *Database, _ time.Duration) ([]Finding, error) {
	var version, journal, synchronous string
	for query, into := range map[string]*string{
		"SELECT sqlite_version()": &version, "PRAGMA journal_mode": &journal, "PRAGMA synchronous": &synchronous,
	} {
		if err := db.QueryRowContext(ctx, query).Scan(into); err != nil {
			return nil, err
		}
	}
	return []Finding{
		{Level: OK, Subject: "scope", Found: "the processes of this host that share " + db.file},
		{Level: OK, Subject: "version", Found: "SQLite " + version},
		fileSystem(filepath.Dir(db.file)),
		sqliteJournal(journal, synchronous),
		db.examineTable(ctx),
	}, nil
}

// sqliteClock says by which clock of this host records expire.
func sqliteClock() Finding {
	if runtime.GOOS == "linux" {
		return Finding{Level: OK, Subject: "clock", Found: "CLOCK_BOOTTIME: nobody can set it, and it counts time asleep"}
	}
	return Finding{Warn, "clock", "the wall clock", "if somebody sets it forward, a record may end too early", "do not set the clock while leaders rely on it"}
}

// sqliteJournal says what outlives a crash of the host. A crash of a process
// loses nothing.
func sqliteJournal(journal, synchronous string) Finding {
	f := Finding{Level: OK, Subject: "journal", Found: journal + ", synchronous = " + synchronous}
	switch {
	case strings.EqualFold(journal, "memory"), strings.EqualFold(journal, "off"):
		f.Level, f.Why = Warn, "a process that is killed while it writes may leave a damaged database"
		f.Advice = "PRAGMA journal_mode = WAL, or DELETE"
	case synchronous == "0":
		f.Level, f.Why = Warn, "a crash of the host may damage the database; records do not outlive it anyway, tokens should"
		f.Advice = "PRAGMA synchronous = FULL"
	}
	return f
}
