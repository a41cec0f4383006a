package filekv

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/electkv/election/internal/observer"
	"github.com/electkv/election/kv"
)

const (
	// maxName is how long a name may be, in bytes.
	maxName = 1 << 10
	// maxText is how long signature, value and note may be together, in bytes.
	maxText = 1 << 20
	// maxTTL keeps deadlines far from the end of the clock.
	maxTTL = 10 * 365 * 24 * time.Hour
	// slack is how much later than at its deadline a record may be seen to have
	// faded: by a tick of the watches, and one wait for another writer.
	slack = patience + 2*tick
)

// A Store is a set of safes in a directory. While it has no live record and no watch, it
// has no open file and no goroutine, so there is nothing to close. Any number of
// goroutines may use it at the same time.
//
// The records of a Store live as long as its process, at most: one Store is one
// holder. A Store that is dropped keeps its life file locked until the last of
// its records has faded.
type Store struct {
	dir   string
	opts  Options
	modes atomic.Pointer[modes] // of the directory, when it was last made
	seen  *observer.Sightings   // of records by other clocks

	lifeMu sync.Mutex
	life   *life // nil while there is no record to keep alive

	hubMu   sync.Mutex
	hub     *hub // nil while nothing is watched
	watches int
}

var _ kv.Store = (*Store)(nil)

// modes are the permissions of what the store creates.
type modes struct {
	file, folder fs.FileMode
}

// Lifetime returns ttl, rounded up to the millisecond, as the shortest life, and
// 300 ms more as the longest. Any positive TTL up to ten years will do; one that
// is not well above the time that a write takes is of little use. A record whose
// holder has died ends at once.
func (s *Store) Lifetime(ttl time.Duration) (kv.Lifetime, error) {
	granted, err := grant(ttl)
	if err != nil {
		return kv.Lifetime{}, fmt.Errorf("filekv: lifetime: %w", err)
	}
	return kv.Lifetime{Min: granted, Max: granted + slack}, nil
}

// grant returns the TTL that a record gets: the text form counts milliseconds.
func grant(ttl time.Duration) (time.Duration, error) {
	if ttl <= 0 || ttl > maxTTL {
		return 0, fmt.Errorf("%w: a TTL of %v; it takes more than 0 and at most %v", kv.ErrInvalid, ttl, maxTTL)
	}
	return (ttl + time.Millisecond - 1).Truncate(time.Millisecond), nil
}

// checkText reports whether the store can keep a record's signature, value and
// note.
func checkText(rec kv.Record) error {
	if err := checkOwn(rec); err != nil {
		return err
	}
	switch {
	case rec.Signature == "" || !utf8.ValidString(rec.Signature):
		return fmt.Errorf("%w: a signature is non-empty UTF-8", kv.ErrInvalid)
	case !utf8.ValidString(rec.Note):
		return fmt.Errorf("%w: a note is UTF-8", kv.ErrInvalid)
	}
	if size := len(rec.Signature) + len(rec.Value) + len(rec.Note); size > maxText {
		return fmt.Errorf("%w: signature, value and note have %d bytes; at most %d fit", kv.ErrInvalid, size, maxText)
	}
	return nil
}

// folder returns the folder of a safe, which need not be there.
func (s *Store) folder(name string) (folder, error) {
	if name == "" || len(name) > maxName {
		return folder{}, fmt.Errorf("%w: a name of %d bytes; it takes 1 to %d", kv.ErrInvalid, len(name), maxName)
	}
	return s.folderOf(escape(name)), nil
}

// folderOf returns the folder of the safe with the escaped name.
func (s *Store) folderOf(name string) folder {
	f := folder{name: name, path: filepath.Join(s.safes(), shorten(name)), temps: s.temps()}
	if m := s.modes.Load(); m != nil { // else nothing is written
		f.modes = *m
	}
	return f
}

func (s *Store) safes() string { return filepath.Join(s.dir, "safes") }

func (s *Store) lives() string { return filepath.Join(s.dir, "lives") }

func (s *Store) temps() string { return filepath.Join(s.dir, "temps") }

// ended returns the reason why ctx has ended, or nil.
func ended(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return context.Cause(ctx)
}
