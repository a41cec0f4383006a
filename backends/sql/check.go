package sqlkv

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/electkv/election/kv"
)

const (
	// longestName is how long a name may be, in bytes.
	longestName = 1 << 10
	// largest is how large signature, value and note may be together, in bytes.
	largest = 1 << 20
	// longest is the longest TTL: what is added to a date stays a date.
	longest = 100 * 365 * 24 * time.Hour
)

// checkName refuses what the table cannot keep as a name in every dialect.
func (t *table) checkName(name string) error {
	if t.unfit != nil {
		return t.unfit
	}
	if name == "" || len(name) > longestName || !utf8.ValidString(name) || strings.Contains(name, "\x00") {
		return fmt.Errorf("%w: want a name of 1 to %d bytes of UTF-8 without NUL", kv.ErrInvalid, longestName)
	}
	return nil
}

// granted returns the TTL that a record gets, in µs, rounded up.
func granted(ttl time.Duration) (int64, error) {
	if ttl <= 0 || ttl > longest {
		return 0, fmt.Errorf("%w: a TTL of %v: want more than zero and up to %v", kv.ErrInvalid, ttl, longest)
	}
	return int64((ttl + time.Microsecond - 1) / time.Microsecond), nil
}

// checkNew refuses what cannot be written.
func checkNew(rec kv.Record) error {
	switch {
	case rec.Foreign:
		return fmt.Errorf("%w: a foreign record cannot be an owner's", kv.ErrInvalid)
	case rec.Signature == "" || !utf8.ValidString(rec.Signature):
		return fmt.Errorf("%w: want a signature that is valid UTF-8, not %.80q", kv.ErrInvalid, rec.Signature)
	case !utf8.ValidString(rec.Note):
		return fmt.Errorf("%w: want a note that is valid UTF-8, not %.80q", kv.ErrInvalid, rec.Note)
	}
	if size := len(rec.Signature) + len(rec.Value) + len(rec.Note); size > largest {
		return fmt.Errorf("%w: signature, value and note have %d bytes: want up to %d", kv.ErrInvalid, size, largest)
	}
	return nil
}

// checkOwn refuses to touch what this library did not write.
func checkOwn(rec kv.Record) error {
	if rec.Foreign {
		return fmt.Errorf("%w: a foreign record is left alone", kv.ErrInvalid)
	}
	if rec.Signature == "" {
		return fmt.Errorf("%w: a record needs a signature", kv.ErrInvalid)
	}
	if rec.Token == 0 {
		return fmt.Errorf("%w: no record of this store is without a token", kv.ErrStale)
	}
	return nil
}
