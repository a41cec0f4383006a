package rediskv

import (
	"fmt"
	"hash/fnv"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/electkv/election/kv"
)

// longest keeps a TTL, rounded up, from running over.
const longest = math.MaxInt64 - 2*time.Millisecond

// granted returns the TTL that a record gets: whole milliseconds, rounded up.
func granted(ttl time.Duration) (time.Duration, error) {
	if ttl <= 0 || ttl > longest {
		return 0, fmt.Errorf("rediskv: TTL %v: want more than zero and less than 292 years: %w", ttl, kv.ErrInvalid)
	}
	return (ttl + time.Millisecond - 1).Truncate(time.Millisecond), nil
}

// checkNew refuses what cannot be written.
func checkNew(name string, rec kv.Record) error {
	if rec.Signature == "" || !utf8.ValidString(rec.Signature) {
		return fmt.Errorf("rediskv: %q: want a signature that is valid UTF-8, not %q: %w", name, rec.Signature, kv.ErrInvalid)
	}
	if !utf8.ValidString(rec.Note) {
		return fmt.Errorf("rediskv: %q: want a note that is valid UTF-8, not %.80q: %w", name, rec.Note, kv.ErrInvalid)
	}
	if rec.Foreign {
		return fmt.Errorf("rediskv: %q: a foreign record cannot be an owner's: %w", name, kv.ErrInvalid)
	}
	return nil
}

// checkOwn refuses to touch what this library did not write.
func checkOwn(name string, rec kv.Record) error {
	if rec.Foreign {
		return fmt.Errorf("rediskv: %q: a foreign record is left alone: %w", name, kv.ErrInvalid)
	}
	if rec.Signature == "" {
		return fmt.Errorf("rediskv: %q: a record needs a signature: %w", name, kv.ErrInvalid)
	}
	return nil
}

// form returns what a script makes a record's text of: a text that the script
// puts the numbers into, and the value, if that is not in the text.
func (s *Store) form(rec kv.Record, ttl time.Duration) (text, value string) {
	bare := kv.Record{Signature: rec.Signature, Value: rec.Value, Note: rec.Note, TTL: ttl}
	switch {
	case s.plain:
		bare.Value, value = "", rec.Value
	case s.observed:
		return kv.EncodeObserved(bare), ""
	}
	return kv.Encode(bare), value
}

// parse returns the record that a text is of, as a script has left it.
func (s *Store) parse(text string) kv.Record {
	rec, value := kv.Decode(text), text
	switch {
	case s.plain:
		text, value, _ = strings.Cut(text, "\n")
		rec = kv.Decode(text)
		rec.Value = value
	case s.observed:
		rec = kv.DecodeObserved(text)
	}
	if rec.Foreign || rec.Token == 0 || rec.Revision == 0 {
		// The scripts write both, always. What has none is not theirs.
		return kv.Record{Value: value, Foreign: true}
	}
	return rec
}

// forever is the time that a key without an expiry has left.
const forever = time.Duration(math.MaxInt64)

// isRecord is the kind of what a script takes for a record of ours. Other kinds
// are types of Redis.
const isRecord = "record"

// state returns what a safe holds, by the kind and text that a script has found
// there, of which left is what the server gives it.
func (s *Store) state(kind, text string, left time.Duration) kv.Record {
	rec := kv.Record{Foreign: true}
	switch kind {
	case isRecord:
		rec = s.parse(text)
	case "string":
		rec.Value = text
	default:
		rec.Value = "(a Redis " + kind + ")"
	}
	if rec.Foreign {
		rec.Revision = fingerprint(kind, rec.Value)
	}
	// Observers see to it that what they judge ends.
	rec.Permanent = left == forever && (rec.Foreign || !s.observed)
	return rec
}

// fingerprint stands in for the revision that a foreign record has not got.
func fingerprint(kind, value string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(kind + "\x00" + value)) // a hash's Write returns no error
	return h.Sum64()
}
