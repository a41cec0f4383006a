package filekv

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/electkv/election/kv"
)

// A life is the life file of a Store, locked as long as it backs a record. Its
// id is the Lease of those records. It is guarded by lifeMu.
type life struct {
	id   string
	lock *flock.Flock
	// holds are the records that it backs, and their deadlines as far as known.
	holds map[hold]time.Duration
	// pins counts the operations at work that may add a hold.
	pins int
	// timer looks after the holds at next; nil before the first.
	timer *time.Timer
	next  time.Duration
}

// A hold is a record that a life backs, by its safe's escaped name.
type hold struct {
	name  string
	token uint64
}

// pin returns the id of the store's life, which is not given up before unpin.
func (s *Store) pin() (id string, err error) {
	s.lifeMu.Lock()
	defer s.lifeMu.Unlock()
	if s.life == nil {
		s.life, err = s.born()
		if err != nil {
			return "", err
		}
	}
	s.life.pins++
	return s.life.id, nil
}

func (s *Store) unpin() error {
	s.lifeMu.Lock()
	defer s.lifeMu.Unlock()
	s.life.pins--
	return s.release(s.life)
}

// keep notes the record that a step has put into the safe f, if our life backs
// it. It also makes the life file young again, for those who clean up by age. If
// the file is gone it backs nothing any more; the deadline does.
func (s *Store) keep(f folder, done step) error {
	s.lifeMu.Lock()
	defer s.lifeMu.Unlock()
	l := s.life
	if l == nil || l.id != done.rec.Lease {
		return nil
	}
	l.holds[hold{f.name, done.rec.Token}] = done.deadline
	if l.timer == nil || done.deadline < l.next {
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
func (s *Store) drop(f folder, rec kv.Record) error {
	s.lifeMu.Lock()
	defer s.lifeMu.Unlock()
	l, h := s.life, hold{f.name, rec.Token}
	if l == nil {
		return nil
	}
	if _, ours := l.holds[h]; !ours {
		return nil
	}
	delete(l.holds, h)
	return s.release(l)
}

// born creates a life file. It is locked before anybody can read its name in a
// page. Who cleans up may be faster, so look at the file again.
func (s *Store) born() (*life, error) {
	s.cleanUp()
	for {
		id := rand.Text()
		path := filepath.Join(s.lives(), id)
		lock := flock.New(path, flock.SetFlag(os.O_CREATE|os.O_EXCL|os.O_RDWR), flock.SetPermissions(s.modes.file))
		ok, err := lock.TryLock()
		if err == nil {
			err = os.Chmod(path, s.modes.file)
		}
		if err == nil && ok {
			ok, err = named(lock)
		}
		if err == nil && ok {
			return &life{id: id, lock: lock, holds: make(map[hold]time.Duration)}, nil
		}
		if err = errors.Join(err, lock.Close(), removeFile(path)); err != nil {
			return nil, err
		}
	}
}

// release gives up the life l if it backs no record. Somebody may have handed a
// safe over to it without our knowing, so look for that first. lifeMu is held.
func (s *Store) release(l *life) error {
	if l.pins > 0 || len(l.holds) > 0 {
		return nil
	}
	if err := s.adopt(l); err != nil {
		s.reviewIn(l, retry)
		return err
	}
	if len(l.holds) > 0 {
		s.reviewIn(l, 0)
		return nil
	}
	if l.timer != nil {
		l.timer.Stop()
	}
	s.life = nil
	return errors.Join(removeFile(l.lock.Path()), l.lock.Close())
}

// adopt looks through all safes for records that l backs. lifeMu is held.
func (s *Store) adopt(l *life) error {
	safes, err := os.ReadDir(s.safes())
	if err != nil {
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
