package filekv

import (
	"crypto/rand"
	"strings"
	"time"

	"github.com/electkv/election/kv"
)

// A lasting record (kv.Record.Lasting) outlives the process that wrote it: it names a
// life of which there is no file. To earlier versions it is a record whose life file
// was removed, which lives by its deadline.

// backing returns the id of the life that backs a new record, and a function that is
// called when the record has been written, or has not.
func (s *Store) backing(rec kv.Record) (life string, written func(), err error) {
	if rec.Lasting {
		return rand.Text(), func() {}, nil
	}
	life, err = s.pin()
	return life, s.unpin, err
}

// lasting reports whether the page is of a lasting record.
func (p page) lasting() bool { return p.Until != 0 }

// untilOf returns when a record fades by the wall clock that has its TTL from now on,
// in Unix milliseconds; zero if it is not a lasting one.
func untilOf(lasting bool, ttl time.Duration) int64 {
	if !lasting {
		return 0
	}
	return time.Now().Add(ttl).UnixMilli()
}

// judgeLasting reports whether the page of c, whose deadline has not passed, is of a
// live record. If it was written by another clock, in an earlier boot or in a container
// with a boot id of its own, the wall clock says: nobody has watched such a record, so
// that there is nothing else to tell its age. A record that would live for longer than
// its TTL shows that the wall clock was set back; it is over.
func (s *Store) judgeLasting(c *state, comparable bool) (live bool, err error) {
	c.pulse = lost
	if comparable {
		return true, nil
	}
	rec := kv.Decode(strings.TrimSuffix(string(c.page.body), "\n"))
	left := time.Until(time.UnixMilli(c.page.Until))
	if left <= 0 || left > rec.TTL+slack {
		return false, nil
	}
	now, err := sinceBoot()
	c.deadline = now + left
	return err == nil, err
}
