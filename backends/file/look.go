package filekv

import (
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/electkv/election/kv"
)

// A state is what was found in a safe.
type state struct {
	found sheet
	rec   kv.Record // zero if the safe is vacant
	held  bool

	// The following are set if an own record is live.
	page  page
	pulse pulse
	// deadline is when the record fades, 0 if nobody here can tell because it
	// was written by another clock.
	deadline time.Duration
	// alien is set in that case: then the record has to be unchanged for left, of its
	// ttl, as long as its text can be read.
	alien     bool
	ttl, left time.Duration
}

// backedBy reports whether the safe holds a record of the life id.
func (c state) backedBy(id string) bool {
	return c.held && !c.rec.Foreign && c.page.Life == id
}

// holds reports whether the safe holds rec at rec's revision.
func (c state) holds(rec kv.Record) bool {
	return c.rec.Owns(rec) && c.rec.Revision == rec.Revision
}

// A pulse says what a life file shows of its process.
type pulse int

const (
	alive pulse = iota // somebody locks the file
	dead               // nobody does
	lost               // there is no such file
)

// next returns the number of a write that follows c.
func (c state) next() uint64 { return c.found.number + 1 }

// look returns the state of the safe f.
//
// A leader that hands over its only record unlocks its life file. A reader that has the old
// page by then finds the file unlocked, though the heir holds the safe. So such a record is
// gone only if the head has not changed when the life file was found unlocked.
func (s *Store) look(f folder) (state, error) {
	for {
		found, err := f.read()
		if errors.Is(err, fs.ErrNotExist) {
			return state{}, nil // a new name, or somebody has removed all there was
		}
		if err != nil {
			return state{}, err
		}
		c, err := s.lookAt(f, found)
		if err != nil || c.held || len(found.text) == 0 {
			return c, err
		}
		if now, err := f.read(); err == nil && now.number == found.number {
			return c, nil
		}
	}
}

// lookAt returns the state of the safe f, whose folder has just been read.
func (s *Store) lookAt(f folder, found sheet) (state, error) {
	outcast := state{found: found, rec: foreign(found), held: true}
	if found.odd {
		return outcast, nil
	}
	if len(found.text) == 0 {
		return state{found: found}, nil
	}
	p, ours := readPage(f, found.text)
	if !ours {
		return outcast, nil
	}
	c := state{found: found, page: p}
	live, err := s.judge(f, &c)
	if err != nil || !live {
		return state{found: found}, err
	}
	c.rec, c.held = p.record(found.number)
	if !c.held {
		outcast.alien, outcast.ttl, outcast.left = c.alien, c.ttl, c.left
		return outcast, nil
	}
	return c, nil
}

// judge reports whether the page of c is of a live record.
//
// The deadline counts on the clock that it was written by only. A page by another clock
// is from another boot, or from a process that lives in another time namespace, or with
// a boot id of its own: that is observed.
func (s *Store) judge(f folder, c *state) (live bool, err error) {
	clock, err := clockName()
	if err != nil {
		return false, err
	}
	if c.page.Clock == clock {
		s.seen.Forget(f.path)
		c.deadline = c.page.Deadline
		now, err := sinceBoot()
		if err != nil || now >= c.deadline {
			return false, err
		}
	}
	if c.page.lasting() {
		return s.judgeLasting(c, c.page.Clock == clock)
	}
	if c.pulse, err = s.feel(c.page.Life); err != nil {
		return false, err
	}
	if c.page.Clock != clock {
		return s.observe(f, c), nil
	}
	return c.pulse != dead, nil
}

// feel tries the lock of a life file. The trial is shared with other trials and
// over at once; a process that cleans up may make a dead process look alive for as long.
func (s *Store) feel(id string) (pulse, error) {
	lock := flock.New(filepath.Join(s.lives(), id), flock.SetFlag(feelFlag))
	ok, err := lock.TryRLock()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return lost, nil
	case err != nil:
		return lost, err
	case !ok:
		return alive, nil
	}
	return dead, lock.Close()
}
