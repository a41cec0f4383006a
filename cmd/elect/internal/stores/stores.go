// Package stores opens the store that a URL names, and examines it. Each kind of store
// is in the file of its name: how its URL is written and what is known of it before it
// is open (kind), and what it can do when it is (Backend). To add one, write such a file,
// and put its kind into the list that kinds returns.
//
// Credentials come from the URL's user part or, better, since everybody on the
// host can read a command line, from the environment variables that the store's
// own tools use. Names of elections get the prefix and a slash in front; a prefix
// that itself begins with a slash has two: etcd://host//locks is "/locks/". In a
// database, table=name and schema=name say where the records are; the table is made
// when it is first needed and missing.
//
// No error and no string made here contains a user part, or any part of a URL
// that was not understood.
package stores

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/electkv/election/cmd/elect/internal/oldlock"
	"github.com/electkv/election/cmd/elect/internal/reserved"
	"github.com/electkv/election/kv"
)

// An Address is the checked URL of a store.
type Address struct {
	shown string
	where *location
	open  opener
}

// An opener opens the store of a URL that was checked. ctx bounds the opening only.
type opener func(ctx context.Context, how purpose) (*Store, error)

// A purpose is what a store is opened for.
type purpose struct {
	reading bool         // and nothing else
	log     *slog.Logger // of a candidate; nil for everybody else
}

// String returns the URL without credentials and parameters.
func (a *Address) String() string { return a.shown }

// Join returns the store as Open does, for a candidate: where the candidates
// themselves are the store, this process becomes the member that the URL names, and
// log gets what is wrong between the members. ctx bounds the opening only.
func (a *Address) Join(ctx context.Context, log *slog.Logger) (*Store, error) {
	return a.opened(ctx, purpose{log: log})
}

// Observe returns the store as Open does, for those who only read: it creates nothing,
// and needs no permission to write. What is not there yet is vacant.
func (a *Address) Observe() (*Store, error) {
	return a.opened(context.Background(), purpose{reading: true})
}

// Open returns the store. It asks the store nothing, but an etcd to log the user
// in, if the URL or the environment names one.
func (a *Address) Open() (*Store, error) { return a.opened(context.Background(), purpose{}) }

func (a *Address) opened(ctx context.Context, how purpose) (*Store, error) {
	s, err := a.open(ctx, how)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.shown, err)
	}
	s.Address = a
	return s, nil
}

// A Store is an open store, with what is particular to its kind.
type Store struct {
	// KV is not embedded: it may have more methods than kv.Store, which a
	// campaign looks for (kv.Queue).
	KV      kv.Store
	Address *Address
	Backend
}

// Forget removes what the store keeps of a name beyond its last record, so that
// tokens grow over it: only for a name that was made up for one occasion. The
// name must be of lower-case letters, digits, "-" and ":".
func (s *Store) Forget(name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := s.forget(ctx, name); err != nil {
		return fmt.Errorf("remove what is left of %q: %w", name, err)
	}
	return nil
}

// OldLocks returns the locks at a name that services had before, as far as they can be
// recognised: see package oldlock. There are none in a store that older locks do not
// use.
func (s *Store) OldLocks(ctx context.Context, name string) ([]oldlock.Lock, error) {
	locks, err := s.oldLocks(ctx, name)
	if err != nil {
		err = fmt.Errorf("look for old locks of %.80q: %w", name, err)
	}
	return locks, err
}

// Elections returns the names of elections that begin with a prefix, in order: at most so
// many, and whether there are more. Where the store removes the record of an election that
// nobody leads, such an election is not among them. It only reads.
func (s *Store) Elections(ctx context.Context, prefix string, most int) (names []string, more bool, err error) {
	found := map[string]bool{}
	for name, err := range s.names(ctx, prefix) {
		switch {
		case errors.Is(err, errors.ErrUnsupported):
			return nil, false, fmt.Errorf("store %v cannot list its elections: name them", s.Address)
		case err != nil:
			return nil, false, fmt.Errorf("store %v: list elections: %w", s.Address, err)
		}
		if of, _, beside := reserved.Election(name); beside {
			name = of
		}
		if name == "" || found[name] {
			continue
		}
		if more = len(found) == most; more {
			break
		}
		found[name] = true
	}
	return slices.Sorted(maps.Keys(found)), more, nil
}

// failing yields an error.
func failing(err error) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) { yield("", err) }
}

// kinds returns all kinds of stores, each from the file of its name.
func kinds() []kind {
	return []kind{
		memKind(), fileKind(), etcdKind(), consulKind(), redisKind(),
		sqliteKind(), postgresKind(), mysqlKind(), paxosKind(),
	}
}

// Parse checks a URL. getenv looks up environment variables. It asks no store,
// but reads the certificates that the URL names.
func Parse(raw string, getenv func(string) string) (*Address, error) {
	name, rest, ok := strings.Cut(raw, ":")
	if !ok || !isScheme(name) {
		return nil, fmt.Errorf("the store is not a URL; use %s", forms())
	}
	name = strings.ToLower(name)
	for _, k := range kinds() {
		if !slices.Contains(k.schemes(), name) {
			continue
		}
		a, err := k.address(name, rest, getenv)
		if err != nil {
			return nil, fmt.Errorf("store %s: %w; use %s", name+":...", err, k.usage())
		}
		return a, nil
	}
	return nil, fmt.Errorf("store %s: unknown scheme %q; use %s", name+":...", name, forms())
}

func isScheme(s string) bool {
	return s != "" && len(s) <= 16 && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || 'z' < r) && (r < 'A' || 'Z' < r) && (r < '0' || '9' < r) && r != '+' && r != '-'
	})
}

// quoteName quotes the name of a parameter, unless it may be something else.
func quoteName(name string) string {
	if isScheme(name) {
		return fmt.Sprintf("%q", name)
	}
	return "in the part after the question mark"
}
