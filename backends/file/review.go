package filekv

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

const (
	// retry is when a life that could not be looked after is looked after again.
	retry = time.Second
	// garbage is the age from which on what a dead process left is removed.
	garbage = time.Hour
	// never is later than every deadline.
	never = time.Duration(math.MaxInt64)
)

// reviewAt sets the timer of l to a deadline. lifeMu is held.
func (s *Store) reviewAt(l *life, deadline time.Duration) {
	now, err := sinceBoot()
	if err != nil {
		s.reviewIn(l, retry)
		return
	}
	s.reviewIn(l, max(deadline-now, 0))
	l.next = deadline
}

// reviewIn sets the timer of l, whatever comes meanwhile. lifeMu is held.
//
// The timer outlives the operation that sets it, as the record does. It ends
// with the life, by the deadline of the last record.
func (s *Store) reviewIn(l *life, d time.Duration) {
	l.next = 0
	if l.timer == nil {
		l.timer = time.AfterFunc(d, func() { s.review(l) })
		return
	}
	l.timer.Reset(d)
}

// review lets go of the records of l that have faded, and of l in the end.
func (s *Store) review(l *life) {
	s.lifeMu.Lock()
	defer s.lifeMu.Unlock()
	if s.life != l {
		return
	}
	l.next = never
	if err := s.settle(l); err != nil {
		s.reviewIn(l, retry) // nobody to tell; the records fade in any case
	}
}

func (s *Store) settle(l *life) error {
	if err := s.letGo(l); err != nil {
		return err
	}
	if len(l.holds) == 0 {
		s.release(l)
		return nil
	}
	next := never
	for _, deadline := range l.holds {
		next = min(next, deadline)
	}
	s.reviewAt(l, next)
	return nil
}

// letGo looks at the records of l whose deadline has passed, as somebody else may
// have refreshed them. lifeMu is held.
func (s *Store) letGo(l *life) error {
	now, err := sinceBoot()
	if err != nil {
		return err
	}
	for h, deadline := range l.holds {
		if now < deadline {
			continue
		}
		cur, err := s.look(s.folderOf(h.name))
		if err != nil {
			return err
		}
		if cur.backedBy(l.id) && cur.rec.Token == h.token {
			l.holds[h] = max(cur.page.Deadline, now+retry) // the clock may be another
			continue
		}
		delete(l.holds, h)
	}
	return nil
}

// adopt looks through all safes for records that l backs, since safes are handed
// over to it without its knowing. lifeMu is held.
func (s *Store) adopt(l *life) error {
	safes, err := os.ReadDir(s.safes())
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // else there is none
		return err
	}
	for _, e := range safes {
		cur, err := s.look(folder{path: filepath.Join(s.safes(), e.Name())})
		if err != nil {
			return err
		}
		if cur.backedBy(l.id) {
			l.holds[hold{cur.page.Name, cur.rec.Token}] = cur.page.Deadline
		}
	}
	return nil
}

// cleanUp removes what processes have left behind that died long ago. Whatever
// it cannot remove now, it or another process will meet again.
func (s *Store) cleanUp() {
	for _, path := range s.aged(s.lives()) {
		lock := flock.New(path, flock.SetFlag(os.O_RDONLY))
		if ok, err := lock.TryLock(); err != nil || !ok {
			continue
		}
		if same, err := named(lock); err == nil && same {
			_ = os.Remove(path)
		}
		_ = lock.Close()
	}
	for _, path := range s.aged(s.temps()) {
		_ = os.RemoveAll(path)
	}
}

// aged returns what is old enough in a directory to be removed. The wall clock
// will do: a life file that is removed too soon only costs its records the early
// end, and a temporary one costs its writer an error.
func (s *Store) aged(dir string) []string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	var paths []string
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && time.Since(info.ModTime()) > garbage {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths
}

// named reports whether a locked file is still the one with its name.
func named(lock *flock.Flock) (bool, error) {
	locked, err := lock.Stat()
	if err != nil {
		return false, err
	}
	found, err := os.Stat(lock.Path())
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(locked, found), err
}
