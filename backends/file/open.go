package filekv

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// open prepares the directory and tries out what the store needs of it.
func open(dir string) (*Store, error) {
	if dir == "" {
		return nil, errors.New("no directory given")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	kind, err := networkFS(dir)
	if err != nil {
		return nil, err
	}
	if kind != "" {
		return nil, fmt.Errorf("it is on a network file system (%s); a file store is for processes of one host and takes a local directory", kind)
	}
	clock, err := clockName()
	if err != nil {
		return nil, err
	}
	if _, err := sinceBoot(); err != nil {
		return nil, err
	}
	s := &Store{dir: dir, clock: clock, modes: modesOf(info.Mode())}
	for _, sub := range []string{s.safes(), s.lives(), filepath.Join(dir, "temps")} {
		if err := s.modes.mkdir(sub); err != nil {
			return nil, err
		}
	}
	if err := s.tryOut(); err != nil {
		return nil, err
	}
	return s, nil
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
	temp := filepath.Join(s.dir, "temps", rand.Text())
	renamed := temp + ".renamed"
	defer os.Remove(renamed)
	defer os.Remove(temp)
	if err := writeFile(temp, nil, s.modes.file, false); err != nil {
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
