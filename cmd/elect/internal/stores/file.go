package stores

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	filekv "github.com/electkv/election/backends/file"
)

// fileSystemParam, with the value anyFileSystem, takes a file system that is not known
// to be local.
const (
	fileSystemParam = "filesystem"
	anyFileSystem   = "any"
)

func fileKind() kind {
	return kind{
		name: "file", form: "file:///directory", params: []string{fileSystemParam}, parse: parseFile,
		help:            [][2]string{{"file:///directory", "processes of one host"}},
		endsWithProcess: true,
	}
}

func parseFile(l *location) (opener, error) {
	if len(l.hosts) > 0 || l.user != "" {
		return nil, errors.New("a directory has no host: write three slashes")
	}
	if !filepath.IsAbs(l.path) {
		return nil, errors.New("the directory is not an absolute path")
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
		return &Store{KV: store, Backend: &fileStore{dir: dir}}, nil
	}, nil
}

// File returns the URL of the file store in dir.
func File(dir string) string { return "file://" + escapePath(dir) }

// A fileStore is a directory.
type fileStore struct {
	base
	dir string
}

// Holds implements [Backend].
func (f *fileStore) Holds() []*os.File { return openBelow(filepath.Join(f.dir, "lives")) }

// Absent implements [Backend].
func (f *fileStore) Absent() string { return absent(f.dir) }

func (f *fileStore) forget(_ context.Context, name string) error {
	return os.RemoveAll(filepath.Join(f.dir, "safes", strings.ReplaceAll(name, ":", "%3a")))
}

// names reads the folders of the safes, which stay when a safe is vacant. A long name is cut in
// the folder's; the record has it in full, and while there is none it is unknown.
func (f *fileStore) names(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		safes := filepath.Join(f.dir, "safes")
		entries, err := os.ReadDir(safes)
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		if err != nil {
			yield("", err)
			return
		}
		for _, entry := range entries {
			if ctx.Err() != nil {
				yield("", context.Cause(ctx))
				return
			}
			escaped := entry.Name()
			if strings.Contains(escaped, "~") {
				escaped = fullName(filepath.Join(safes, escaped))
			}
			name, err := url.PathUnescape(escaped)
			if err == nil && entry.IsDir() && strings.HasPrefix(name, prefix) && !yield(name, nil) {
				return
			}
		}
	}
}

// fullName returns the name in a page of a safe's folder as it is escaped there, empty if there
// is none.
func fullName(folder string) string {
	pages, _ := os.ReadDir(folder) // what cannot be read has no name
	for _, entry := range pages {
		text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		first, _, _ := bytes.Cut(text, []byte("\n"))
		page := struct {
			Name string `json:"name"`
		}{}
		if err == nil && json.Unmarshal(first, &page) == nil && page.Name != "" {
			return page.Name
		}
	}
	return ""
}

// Examine looks at the directory and at this host.
func (f *fileStore) Examine(context.Context, time.Duration) []Finding {
	return []Finding{
		{Level: OK, Subject: "scope", Found: "the processes of this host that share " + f.dir},
		{Level: OK, Subject: "clock", Found: "one that nobody can set, and that counts time asleep"},
		directory(f.dir),
		{Level: OK, Subject: "holder's death", Found: "frees the record at once, as the kernel drops the holder's file lock; where the holder has another boot id or time namespace, as in a container, or the host was restarted, after the TTL"},
	}
}

func directory(dir string) Finding {
	info, err := os.Stat(dir)
	if err != nil {
		return Finding{Fail, "directory", err.Error(), "records are kept there", "make it accessible"}
	}
	f := fileSystem(dir)
	f.Subject, f.Found = "directory", fmt.Sprintf("%s on %s, mode %v", dir, f.Found, info.Mode().Perm())
	if info.Mode().Perm()&0o002 != 0 {
		f.Level, f.Why, f.Advice = Warn, "every user of the host can remove records", "take the write permission from others"
	}
	return f
}
