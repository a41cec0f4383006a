package storeurl

import (
	"errors"
	"net/url"
	"path/filepath"

	"modernc.org/sqlite"

	sqlkv "github.com/electkv/election/backends/sql"
)

// sqliteParams are the URL parameters of SQLite.
func sqliteParams() []string { return []string{"table", expiryParam} }

func parseSQLite(l *location) (func() (*Store, error), error) {
	if len(l.hosts) > 0 || l.user != "" {
		return nil, errors.New("a file has no host: write three slashes")
	}
	if !filepath.IsAbs(l.path) {
		return nil, errors.New("the file is not given from the root on")
	}
	file := filepath.Clean(l.path)
	// A connection waits a while for others that write, rather than fail at once.
	name := (&url.URL{Scheme: "file", Path: file, RawQuery: "_pragma=busy_timeout(250)"}).String()
	connector, err := sqlite.NewConnector(name)
	if err != nil {
		return nil, err
	}
	open, err := l.inDatabase(sqlkv.SQLite, sqlkv.Options{Table: l.query.Get("table")}, connector)
	if err != nil {
		return nil, err
	}
	return func() (*Store, error) {
		store, err := open()
		if err == nil {
			store.SQL.File = file
		}
		return store, err
	}, nil
}
