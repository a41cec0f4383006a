package storeurl

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	filekv "github.com/electkv/election/backends/file"
	memkv "github.com/electkv/election/backends/mem"
)

func parseMem(l *location) (opener, error) {
	if l.slashes || l.path != "" {
		return nil, errors.New("memory has no host and no path")
	}
	return func(context.Context, purpose) (*Store, error) { return &Store{KV: memkv.New()}, nil }, nil
}

// fileSystemParam, with the value anyFileSystem, takes a file system that is not known
// to be local.
const (
	fileSystemParam = "filesystem"
	anyFileSystem   = "any"
)

func parseFile(l *location) (opener, error) {
	if len(l.hosts) > 0 || l.user != "" {
		return nil, errors.New("a directory has no host: write three slashes")
	}
	if !filepath.IsAbs(l.path) {
		return nil, errors.New("the directory is not given from the root on")
	}
	if err := l.oneOf(fileSystemParam, anyFileSystem); err != nil {
		return nil, err
	}
	dir := filepath.Clean(l.path)
	return func(_ context.Context, how purpose) (*Store, error) {
		store, err := filekv.New(dir, &filekv.Options{AnyFileSystem: l.query.Has(fileSystemParam), ReadOnly: how.reading})
		if err != nil {
			return nil, err
		}
		return &Store{KV: store, Dir: dir, holds: func() []*os.File { return openBelow(filepath.Join(dir, "lives")) }}, nil
	}, nil
}

// File returns the URL of the file store in dir.
func File(dir string) string { return "file://" + escapePath(dir) }
