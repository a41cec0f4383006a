package kv

import (
	"encoding/json"
	"fmt"
	"math"
	"time"
	"unicode/utf8"
)

// textVersion is the version of the text form. A reader takes any other version
// for a foreign record.
const textVersion = 1

// text is the form in which adapters write a record where the store holds one
// string per key: a JSON object that an operator can read.
type text struct {
	Election  int    `json:"election"`
	Signature string `json:"signature"`
	Value     string `json:"value,omitempty"`
	Binary    []byte `json:"binary,omitempty"` // the value, if it is not valid UTF-8
	Note      string `json:"note,omitempty"`
	TTL       int64  `json:"ttl_ms"`
	Token     uint64 `json:"token,omitempty"`
	Revision  uint64 `json:"revision,omitempty"`
	Observed  bool   `json:"observed,omitempty"` // observers judge its expiry
}

// longestTTL is the longest TTL in milliseconds that a time.Duration can hold.
const longestTTL = int64(math.MaxInt64 / time.Millisecond)

// milliseconds rounds up, as a record must not live shorter than was asked.
func milliseconds(ttl time.Duration) int64 {
	ms := int64(ttl / time.Millisecond)
	if ttl%time.Millisecond > 0 {
		ms++
	}
	return min(ms, longestTTL)
}

// Encode returns the text form of a record: its signature, value, note and TTL (in
// milliseconds, rounded up), and its token and revision if they are not zero. A
// store that derives token or revision from its own counters leaves them zero.
// Lease, Foreign and Permanent are not in it: the store knows them. The result is the
// same for the same record.
func Encode(rec Record) string { return encode(rec, false) }

// EncodeObserved is [Encode] for a record whose expiry is judged by its observers,
// not by the store. Each of the two kinds is foreign to readers of the other,
// because a reader that judges expiry in the wrong way would take a live record for
// dead.
func EncodeObserved(rec Record) string { return encode(rec, true) }

func encode(rec Record, observed bool) string {
	t := text{
		Election:  textVersion,
		Signature: rec.Signature,
		Note:      rec.Note,
		TTL:       milliseconds(rec.TTL),
		Token:     rec.Token,
		Revision:  rec.Revision,
		Observed:  observed,
	}
	if utf8.ValidString(rec.Value) {
		t.Value = rec.Value
	} else {
		t.Binary = []byte(rec.Value)
	}
	b, err := json.Marshal(t)
	if err != nil {
		panic(fmt.Sprintf("kv: a record always has a text form: %v", err))
	}
	return string(b)
}

// Decode parses the text form of a record. Anything else is a foreign record with s as its
// value.
func Decode(s string) Record { return decode(s, false) }

// DecodeObserved parses the text form of a record that [EncodeObserved] makes. Anything else
// is a foreign record with s as its value.
func DecodeObserved(s string) Record { return decode(s, true) }

func decode(s string, observed bool) Record {
	var t text
	err := json.Unmarshal([]byte(s), &t)
	if err != nil || t.Election != textVersion || t.Observed != observed || t.Signature == "" || t.TTL <= 0 || t.TTL > longestTTL {
		return Record{Value: s, Foreign: true}
	}
	value := t.Value
	if t.Binary != nil {
		value = string(t.Binary)
	}
	return Record{
		Signature: t.Signature,
		Value:     value,
		Note:      t.Note,
		Token:     t.Token,
		Revision:  t.Revision,
		TTL:       time.Duration(t.TTL) * time.Millisecond,
	}
}
