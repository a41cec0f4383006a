package filekv

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"

	"github.com/electkv/election/internal/localfs"
	"github.com/electkv/election/internal/observer"
	"github.com/electkv/election/kv"
)

// Options change how a [Store] works. The zero value is a good choice.
type Options struct {
	// AnyFileSystem accepts a directory on a file system that is not known to be local,
	// such as FUSE. Use it where one kernel alone mounts the directory. Where several do,
	// safes are safe only if a rename(2) of one kernel is atomic for the others.
	AnyFileSystem bool

	// ReadOnly makes a store for observers: it creates nothing, needs no permission to
	// write, and refuses all writes with [kv.ErrInvalid]. As long as the directory is
	// missing, all safes are vacant.
	ReadOnly bool
}

var errReadOnly = fmt.Errorf("%w: the store was opened for reading only", kv.ErrInvalid)

// New returns the store in the directory dir, which it creates with mode 0700 if
// it is missing, now and whenever a create finds it removed. The error says why a
// directory cannot be used. Options may be nil.
func New(dir string, opts *Options) (*Store, error) {
	if opts == nil {
		opts = &Options{}
	}
	s, err := open(dir, *opts)
	if err != nil {
		return nil, fmt.Errorf("filekv: open %q: %w", dir, err)
	}
	return s, nil
}

// open prepares the directory, unless it is for reading.
func open(dir string, opts Options) (*Store, error) {
	if dir == "" {
		return nil, errors.New("no directory given")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if _, err := sinceBoot(); err != nil {
		return nil, err
	}
	if _, err := clockName(); err != nil {
		return nil, err
	}
	s := &Store{dir: dir, opts: opts, seen: observer.NewSightings()}
	if !opts.ReadOnly {
		return s, s.prepare()
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err == nil && len(entries) > 0 { // those who may list it may not be let into it
		_, err = os.Stat(s.safes())
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	if err != nil {
		return nil, err
	}
	return s, s.checkFS()
}

// prepare makes the directory, if it is missing, and tries out what the store needs of
// it.
func (s *Store) prepare() error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(s.dir)
	if err != nil {
		return err
	}
	if err := s.checkFS(); err != nil {
		return err
	}
	m := modesOf(info.Mode())
	for _, sub := range []string{s.safes(), s.lives(), s.temps()} {
		if err := m.mkdir(sub); err != nil {
			return err
		}
	}
	s.modes.Store(&m)
	return s.tryOut()
}

// checkFS refuses a file system that another kernel may have mounted as well.
func (s *Store) checkFS() error {
	if s.opts.AnyFileSystem {
		return nil
	}
	kind, err := localfs.Of(s.dir)
	if err != nil {
		return err
	}
	return kind.Refusal("insist by Options.AnyFileSystem (in a URL, filesystem=any)")
}

// modesOf returns what to create in a directory of the given mode, so that
// whoever may use the directory may use what is in it.
func modesOf(dir fs.FileMode) modes {
	return modes{file: dir & 0o666, folder: dir & (fs.ModePerm | fs.ModeSetgid)}
}

// mkdir creates a folder, if it is not there.
func (m modes) mkdir(path string) error {
	err := os.Mkdir(path, m.folder)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.Chmod(path, m.folder)
}

// tryOut does once what operations do: create a file, rename it, lock it. It
// works on a full disk.
func (s *Store) tryOut() error {
	temp := filepath.Join(s.temps(), rand.Text())
	renamed := temp + ".renamed"
	defer os.Remove(renamed)
	defer os.Remove(temp)
	if err := writeFile(temp, nil, s.modes.Load().file, false); err != nil {
		return fmt.Errorf("it is not writable: %w", err)
	}
	if err := os.Rename(temp, renamed); err != nil {
		return err
	}
	if err := os.Rename(temp, renamed); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the file system renames what is not there: %w", err)
	}
	return tryLocks(renamed)
}

// tryLocks locks a file twice.
func tryLocks(path string) error {
	first := flock.New(path, flock.SetFlag(os.O_RDWR))
	defer first.Close()
	if ok, err := first.TryLock(); err != nil || !ok {
		return errors.Join(errors.New("the file system has no locks"), err)
	}
	second := flock.New(path, flock.SetFlag(os.O_RDONLY))
	defer second.Close()
	ok, err := second.TryRLock()
	if err != nil || ok {
		return errors.Join(errors.New("the file system does not heed locks"), err)
	}
	return nil
}
