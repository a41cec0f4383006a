package rediskv

import (
	"fmt"
	"hash/fnv"
	"math"
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

// bare returns the text of a record that a script puts the numbers into.
func bare(rec kv.Record, ttl time.Duration) string {
	return kv.Encode(kv.Record{Signature: rec.Signature, Value: rec.Value, TTL: ttl})
}

// forever is the time that a key without an expiry has left.
const forever = time.Duration(math.MaxInt64)

// state returns the record that a key of a type and with a text holds, of which
// left is what the server gives it.
func state(kind, text string, left time.Duration) kv.Record {
	rec := kv.Decode(text)
	if kind != "string" {
		rec = kv.Record{Value: "(a Redis " + kind + ")", Foreign: true}
	}
	if rec.Token == 0 || rec.Revision == 0 {
		// The scripts write both, always. What has none is not theirs.
		value := rec.Value
		if kind == "string" {
			value = text
		}
		rec = kv.Record{Value: value, Foreign: true}
	}
	if rec.Foreign {
		rec.Revision = fingerprint(kind, rec.Value)
	}
	rec.Permanent = left == forever
	return rec
}

// fingerprint stands in for the revision that a foreign record has not got.
func fingerprint(kind, value string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(kind + "\x00" + value)) // a hash's Write returns no error
	return h.Sum64()
}
