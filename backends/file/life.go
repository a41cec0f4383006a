package filekv

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/electkv/election/kv"
)

// A life is the life file of a Store, locked as long as it backs a record. It is
// guarded by lifeMu.
type life struct {
	id   string
	lock *flock.Flock
	// holds are the records that it backs, and their deadlines as far as known.
	holds map[hold]time.Duration
	// pins counts the operations at work that may add a hold.
	pins int
	// timer looks after the holds at next, or earlier; nil before the first.
	timer *time.Timer
	next  time.Duration // never if the timer is not set
}

// A hold is a record that a life backs, by its safe's escaped name.
type hold struct {
	name  string
	token uint64
}

// leaseOf returns the Lease of a record in the safe f that a life backs. It names
// the safe, so that one look tells whether there is an heir to hand over to.
func leaseOf(life string, f folder) string { return life + "/" + f.name }

// parseLease returns what leaseOf put together, and reports whether it did.
func parseLease(lease string) (life, name string, ok bool) {
	life, name, ok = strings.Cut(lease, "/")
	return life, name, ok && isID(life) && filepath.IsLocal(name) && !strings.ContainsAny(name, `/\`)
}

// pin returns the id of the store's life, which is not given up before unpin. A life
// whose file was removed backs nothing, so the store begins another.
func (s *Store) pin() (id string, err error) {
	if s.opts.ReadOnly {
		return "", errReadOnly
	}
	s.lifeMu.Lock()
	defer s.lifeMu.Unlock()
	if err := s.bury(); err != nil {
		return "", err
	}
	if s.life == nil {
		s.life, err = s.born()
		if err != nil {
			return "", err
		}
	}
	s.life.pins++
	return s.life.id, nil
}

// bury gives up a life whose file is gone, unless an operation is at work on it. Its
// records have their deadlines. lifeMu is held.
func (s *Store) bury() error {
	if s.life == nil || s.life.pins > 0 {
		return nil
	}
	there, err := named(s.life.lock)
	if err != nil || there {
		return err
	}
	if s.life.timer != nil {
		s.life.timer.Stop()
	}
	err = s.life.lock.Close()
	s.life = nil
	return err
}

func (s *Store) unpin() {
	s.lifeMu.Lock()
	defer s.lifeMu.Unlock()
	s.life.pins--
	s.release(s.life)
}

// keep notes the record that a step has put into the safe f, if our life backs
// it. It also makes the life file young again, for those who clean up by age. If
// the file is gone it backs nothing any more; the deadline does.
func (s *Store) keep(f folder, done step) error {
	s.lifeMu.Lock()
	defer s.lifeMu.Unlock()
	l := s.life
	if l == nil || l.id != done.life {
		return nil
	}
	l.holds[hold{f.name, done.rec.Token}] = done.deadline
	if done.deadline < l.next {
		s.reviewAt(l, done.deadline)
	}
	now := time.Now()
	err := os.Chtimes(l.lock.Path(), now, now)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// drop notes that the safe f does not hold rec any more.
func (s *Store) drop(f folder, rec kv.Record) {
	s.lifeMu.Lock()
	defer s.lifeMu.Unlock()
	if s.life == nil {
		return
	}
	h := hold{f.name, rec.Token}
	if _, ours := s.life.holds[h]; ours {
		delete(s.life.holds, h)
		s.release(s.life)
	}
}

// release gives up the life l if it backs no record. Safes are handed over to it
// without its knowing, so look for that first. lifeMu is held.
//
// Whoever hands a safe over while the last record is deleted may come too late
// to be seen. The life file is gone then, and that record has its deadline.
func (s *Store) release(l *life) {
	if l.pins > 0 || len(l.holds) > 0 {
		return
	}
	if err := s.adopt(l); err != nil {
		s.reviewIn(l, retry)
		return
	}
	if len(l.holds) > 0 {
		s.reviewIn(l, 0)
		return
	}
	if l.timer != nil {
		l.timer.Stop()
	}
	s.life = nil
	_ = os.Remove(l.lock.Path()) // another life's cleanUp will
	_ = l.lock.Close()
}

// born creates a life file. It is locked before anybody can read its name in a
// page. Who cleans up may be faster, so look at the file again.
func (s *Store) born() (*life, error) {
	s.cleanUp()
	mode := s.modes.Load().file
	for {
		id := rand.Text()
		path := filepath.Join(s.lives(), id)
		lock := flock.New(path, flock.SetFlag(os.O_CREATE|os.O_EXCL|os.O_RDWR), flock.SetPermissions(mode))
		ok, err := lock.TryLock()
		if err == nil {
			err = os.Chmod(path, mode)
		}
		if err == nil && ok {
			ok, err = named(lock)
		}
		if err == nil && ok {
			return &life{id: id, lock: lock, holds: make(map[hold]time.Duration), next: never}, nil
		}
		if err = errors.Join(err, lock.Close(), removeFile(path)); err != nil {
			return nil, err
		}
	}
}
