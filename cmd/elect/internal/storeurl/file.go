package storeurl

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	filekv "github.com/electkv/election/backends/file"
	memkv "github.com/electkv/election/backends/mem"
)

func parseMem(l *location) (func() (*Store, error), error) {
	if l.slashes || l.path != "" {
		return nil, errors.New("memory has no host and no path")
	}
	return func() (*Store, error) { return &Store{KV: memkv.New()}, nil }, nil
}

func parseFile(l *location) (func() (*Store, error), error) {
	if len(l.hosts) > 0 || l.user != "" {
		return nil, errors.New("a directory has no host: write three slashes")
	}
	if !filepath.IsAbs(l.path) {
		return nil, errors.New("the directory is not given from the root on")
	}
	dir := filepath.Clean(l.path)
	return func() (*Store, error) {
		store, err := filekv.New(dir)
		if err != nil {
			return nil, err
		}
		return &Store{KV: store, Dir: dir, holds: func() []*os.File { return openBelow(filepath.Join(dir, "lives")) }}, nil
	}, nil
}

// Default returns the URL of the store that needs no server: a directory for
// this user's processes. It makes the directory if need be, with mode 0700, and
// refuses one that belongs to somebody else.
func Default(getenv func(string) string) (string, error) {
	dir := filepath.Join(runtimeDir(getenv), "elect")
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(os.TempDir(), "elect-"+strconv.Itoa(os.Getuid()))
	}
	if err := private(dir); err != nil {
		return "", fmt.Errorf("the default store: %w; name another with --store or ELECT_STORE", err)
	}
	return File(dir), nil
}

// runtimeDir returns the user's runtime directory, empty if there is none. Cron
// and others start without the variable: then it is looked for where systemd puts
// it, so that they meet those who are logged in.
func runtimeDir(getenv func(string) string) string {
	if dir := getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return dir
	}
	dir := "/run/user/" + strconv.Itoa(os.Getuid())
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return ""
	}
	return dir
}

// private sees to it that dir is a directory that nobody else can write to.
func private(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory", dir)
	case !isMine(info):
		return fmt.Errorf("%s belongs to another user", dir)
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%s is open to other users: its mode is %v, not 0700", dir, info.Mode().Perm())
	}
	return nil
}

// File returns the URL of the file store in dir.
func File(dir string) string { return "file://" + escapePath(dir) }
