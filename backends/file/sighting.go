package filekv

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/electkv/election/kv"
)

// A record by another clock is judged as package observer judges: a process that has seen the
// same head for the record's TTL, on its own clock, may turn exactly that head. Each
// refresh gives the safe another one. That another boot or time namespace wrote the
// page proves nothing of its holder, which may run beside us in a container; and a lock
// that is free proves nothing where another kernel may hold it.
//
// What was seen is in the store's memory, and a create that is refused writes it into
// the safe's folder as well, for programs that ask once and end: the next one that asks
// on the same clock gets in. Every write of the safe sweeps it away.

// sightingPrefix begins the names of files in which sightings are kept.
const sightingPrefix = "seen."

func isSighting(name string) bool { return strings.HasPrefix(name, sightingPrefix) }

// observe sets how long c has left, whose page is by another clock. A page that is torn
// needs no observer: it was whole before its head named it, so the host has crashed
// since.
func (s *Store) observe(f folder, c *state) (live bool) {
	c.alien = true
	ttl := c.page.TTL
	if rec, ours := c.page.record(c.found.number); ours && ttl <= 0 {
		ttl = rec.TTL // of a version that did not write it
	}
	if ttl <= 0 || !bytes.HasSuffix(c.found.text, []byte("\n")) {
		return c.pulse == alive
	}
	c.ttl = ttl
	c.left = s.seen.Left(f.path, kv.Record{Signature: c.page.Life, Token: 1, Revision: c.found.number, TTL: ttl})
	return c.left > 0
}

// outlived returns the number of the head in c if that was seen for its TTL by those
// who asked before, and 0 if it is to be respected. It writes down what is seen now.
func (s *Store) outlived(f folder, c state) (uint64, error) {
	if !c.alien || c.ttl == 0 || s.opts.ReadOnly {
		return 0, kv.ErrHeld
	}
	clock, err := clockName()
	if err != nil {
		return 0, err
	}
	now, err := sinceBoot()
	if err != nil {
		return 0, err
	}
	path := filepath.Join(f.path, fmt.Sprintf("%s%x", sightingPrefix, sha256.Sum256([]byte(clock)))[:len(sightingPrefix)+32])
	number, since, err := readSighting(path)
	if err == nil && number == c.found.number && since <= now {
		if now-since >= c.ttl {
			return number, nil
		}
		return 0, unsure(since + c.ttl - now)
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = f.note(path, c.found.number, now)
	}
	if err != nil {
		return 0, fmt.Errorf("%w (it cannot be written down: %w)", unsure(c.ttl), err)
	}
	return 0, unsure(c.ttl)
}

func unsure(left time.Duration) error {
	return fmt.Errorf("%w: its record is by the clock of another boot or time namespace, and is vacant if it stays unchanged for %v more", kv.ErrHeld, left.Round(time.Millisecond))
}

// readSighting returns which head was seen, and since when. What cannot be understood
// is of no head.
func readSighting(path string) (number uint64, since time.Duration, err error) {
	text, err := readSome(path)
	if err != nil {
		return 0, 0, err
	}
	if n, err := fmt.Sscanf(string(text), "%d %d\n", &number, &since); n != 2 || err != nil {
		return 0, 0, nil //nolint:nilerr // torn by a crash of the host, or somebody else's
	}
	return number, since, nil
}

// note writes down since when a head is seen.
func (f folder) note(path string, number uint64, since time.Duration) error {
	temp := filepath.Join(f.temps, rand.Text())
	defer os.Remove(temp)
	if err := writeFile(temp, fmt.Appendf(nil, "%d %d\n", number, int64(since)), f.modes.file, false); err != nil {
		return err
	}
	return os.Rename(temp, path)
}
