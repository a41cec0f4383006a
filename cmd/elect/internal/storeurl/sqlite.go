package storeurl

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"path/filepath"

	"modernc.org/sqlite"

	sqlkv "github.com/electkv/election/backends/sql"
	"github.com/electkv/election/internal/localfs"
)

// sqliteParams are the URL parameters of SQLite.
func sqliteParams() []string { return []string{"table", expiryParam, fileSystemParam} }

func parseSQLite(l *location) (opener, error) {
	if len(l.hosts) > 0 || l.user != "" {
		return nil, errors.New("a file has no host: write three slashes")
	}
	if !filepath.IsAbs(l.path) {
		return nil, errors.New("the file is not given from the root on")
	}
	file := filepath.Clean(l.path)
	// A connection waits a while for others that write, rather than fail at once.
	name := (&url.URL{Scheme: "file", Path: file, RawQuery: "_pragma=busy_timeout(250)"}).String()
	options := sqlkv.Options{Table: l.query.Get("table")}
	connector, err := sqlite.NewConnector(name)
	if err != nil {
		return nil, err
	}
	open, err := l.inDatabase(sqlkv.SQLite, options, connector)
	if err != nil {
		return nil, err
	}
	reader, err := sqlite.NewConnector(name + "&mode=ro")
	if err != nil {
		return nil, err
	}
	read, err := l.inDatabase(sqlkv.SQLite, options, reader)
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
		begin := open
		if how.reading {
			begin = read
		}
		store, err := begin(ctx, how)
		if err == nil {
			store.SQL.File = file
		}
		return store, err
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
