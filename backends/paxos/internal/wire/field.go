package wire

import (
	"encoding/binary"
	"errors"
	"time"
	"unicode/utf8"

	"github.com/electkv/election/backends/paxos/internal/lease"
)

// errMalformed means that bytes are not what they were said to be.
var errMalformed = errors.New("malformed")

// A writer builds the text of numbers and texts, each after the other.
type writer struct{ bytes []byte }

func (w *writer) number(n uint64) { w.bytes = binary.AppendUvarint(w.bytes, n) }

func (w *writer) text(s string) {
	w.number(uint64(len(s)))
	w.bytes = append(w.bytes, s...)
}

func (w *writer) span(d time.Duration) { w.number(uint64(max(d, 0))) }

func (w *writer) flag(on bool) {
	if on {
		w.number(1)
		return
	}
	w.number(0)
}

// A reader takes apart what a writer made. After the first thing that is not as it
// should be, everything it returns is zero, and end says so.
type reader struct {
	bytes  []byte
	failed bool
}

func (r *reader) fail() { r.bytes, r.failed = nil, true }

func (r *reader) number() uint64 {
	n, size := binary.Uvarint(r.bytes)
	if r.failed || size <= 0 || size > 1 && r.bytes[size-1] == 0 { // one form a number
		r.fail()
		return 0
	}
	r.bytes = r.bytes[size:]
	return n
}

// charsUpTo returns the next text, of any bytes, but at most so many.
func (r *reader) charsUpTo(most int) string {
	size := r.number()
	if size > uint64(min(most, len(r.bytes))) {
		r.fail()
		return ""
	}
	s := string(r.bytes[:size])
	r.bytes = r.bytes[size:]
	return s
}

// text returns the next text, which must be valid UTF-8.
func (r *reader) text() string { return r.textUpTo(len(r.bytes)) }

// textUpTo is text of at most so many bytes.
func (r *reader) textUpTo(most int) string {
	s := r.charsUpTo(most)
	if !utf8.ValidString(s) {
		r.fail()
		return ""
	}
	return s
}

func (r *reader) span() time.Duration {
	n := r.number()
	if n > uint64(lease.MaxSpan) {
		r.fail()
		return 0
	}
	return time.Duration(n)
}

// counter returns the next number, which is one of a ballot.
func (r *reader) counter() uint64 {
	n := r.number()
	if n > lease.MaxCounter {
		r.fail()
		return 0
	}
	return n
}

// count returns the next number, which is at most most.
func (r *reader) count(most int) int {
	n := r.number()
	if n > uint64(most) {
		r.fail()
		return 0
	}
	return int(n)
}

func (r *reader) member() lease.MemberID { return lease.MemberID(r.textUpTo(lease.MaxID)) }

func (r *reader) flag() bool { return r.count(1) == 1 }

// end returns an error unless all was well formed, and nothing is left.
func (r *reader) end() error {
	if r.failed || len(r.bytes) > 0 {
		return errMalformed
	}
	return nil
}
