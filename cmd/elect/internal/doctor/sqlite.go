package doctor

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/electkv/election/cmd/elect/internal/storeurl"
)

func sqlite(ctx context.Context, store *storeurl.Store) ([]Finding, error) {
	db := store.SQL
	var version, journal, synchronous string
	for query, into := range map[string]*string{
		"SELECT sqlite_version()": &version, "PRAGMA journal_mode": &journal, "PRAGMA synchronous": &synchronous,
	} {
		if err := db.QueryRowContext(ctx, query).Scan(into); err != nil {
			return nil, err
		}
	}
	return []Finding{
		{Level: OK, Subject: "scope", Found: "the processes of this host that share " + db.File},
		{Level: OK, Subject: "version", Found: "SQLite " + version},
		fileSystem(filepath.Dir(db.File)),
		sqliteJournal(journal, synchronous),
		table(ctx, db),
	}, nil
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
