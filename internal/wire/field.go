package wire

import (
	"encoding/binary"
	"errors"
	"time"
	"unicode/utf8"
)

// ErrMalformed means that bytes are not what they were said to be.
var ErrMalformed = errors.New("malformed")

// A Writer appends numbers and texts to Bytes, each after the other. Each has one form.
type Writer struct{ Bytes []byte }

// Number appends a number.
func (w *Writer) Number(n uint64) { w.Bytes = binary.AppendUvarint(w.Bytes, n) }

// Text appends a text, of any bytes.
func (w *Writer) Text(s string) {
	w.Number(uint64(len(s)))
	w.Bytes = append(w.Bytes, s...)
}

// Span appends a span of time, in nanoseconds. One below zero is written as zero.
func (w *Writer) Span(d time.Duration) { w.Number(uint64(max(d, 0))) }

// Flag appends a flag.
func (w *Writer) Flag(on bool) {
	if on {
		w.Number(1)
		return
	}
	w.Number(0)
}

// A Reader takes apart what a [Writer] made, or anybody else. After the first thing that is
// not as it should be, everything it returns is zero, and End says so.
type Reader struct {
	bytes  []byte
	failed bool
}

// NewReader returns a reader of b.
func NewReader(b []byte) *Reader { return &Reader{bytes: b} }

// Fail has the reader find what it has read wrong.
func (r *Reader) Fail() { r.bytes, r.failed = nil, true }

// Number returns the next number.
func (r *Reader) Number() uint64 {
	n, size := binary.Uvarint(r.bytes)
	if r.failed || size <= 0 || size > 1 && r.bytes[size-1] == 0 { // one form a number
		r.Fail()
		return 0
	}
	r.bytes = r.bytes[size:]
	return n
}

// NumberUpTo returns the next number, which is at most most.
func (r *Reader) NumberUpTo(most uint64) uint64 {
	n := r.Number()
	if n > most {
		r.Fail()
		return 0
	}
	return n
}

// Count returns the next number, which is at most most.
func (r *Reader) Count(most int) int { return int(r.NumberUpTo(uint64(most))) }

// Chars returns the next text, of any bytes, but at most so many.
func (r *Reader) Chars(most int) string {
	size := r.Number()
	if size > uint64(min(most, len(r.bytes))) {
		r.Fail()
		return ""
	}
	s := string(r.bytes[:size])
	r.bytes = r.bytes[size:]
	return s
}

// Text returns the next text, which must be valid UTF-8 of at most so many bytes.
func (r *Reader) Text(most int) string {
	s := r.Chars(most)
	if !utf8.ValidString(s) {
		r.Fail()
		return ""
	}
	return s
}

// Span returns the next span of time, which is at most most.
func (r *Reader) Span(most time.Duration) time.Duration {
	return time.Duration(r.NumberUpTo(uint64(most)))
}

// Flag returns the next flag.
func (r *Reader) Flag() bool { return r.Count(1) == 1 }

// End returns [ErrMalformed] unless all was well formed, and nothing is left.
func (r *Reader) End() error {
	if r.failed || len(r.bytes) > 0 {
		return ErrMalformed
	}
	return nil
}
