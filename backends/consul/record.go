package consulkv

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/hashicorp/consul/api"

	"github.com/electkv/election/kv"
)

// An entry is what a safe's key holds, if anything. With plain values it is what
// the key and its companion hold together.
type entry struct {
	rec     kv.Record // zero if the safe is vacant
	version version
	session string // holds the key, if not empty

	// shared means that the session backs, or has backed, another record too.
	// The text of such a record has a revision of its own, and the text of every
	// other one has none: its revision is the key's ModifyIndex. So a hand-over
	// can mark the heir's own record without changing it.
	shared bool

	// floor is a token that a vacant key tells of: of its last record, or of a
	// safe elsewhere that this one goes on from.
	floor uint64
}

// A version tells whether a safe's keys have changed: the ModifyIndex of each, 0
// if there is no such key. Without plain values there is no companion.
type version struct{ key, companion uint64 }

// newest returns an index that every later write is above.
func (v version) newest() uint64 { return max(v.key, v.companion) }

// decode returns what pair holds, which is nil if there is no such key.
//
// The lock flags make a key a lock; a lock without a session is open, whatever
// value its last owner left there.
func decode(pair *api.KVPair) entry {
	switch {
	case pair == nil:
		return entry{}
	case pair.Flags != api.LockFlagValue:
		return foreign(pair)
	case pair.Session == "":
		return entry{version: version{key: pair.ModifyIndex}, floor: floorOf(pair.Value)}
	}
	rec := kv.Decode(string(pair.Value))
	if rec.Foreign {
		return foreign(pair)
	}
	shared := rec.Revision != 0
	if !shared {
		rec.Revision = pair.ModifyIndex
	}
	if rec.Token == 0 {
		rec.Token = pair.ModifyIndex
	}
	rec.Lease = pair.Session
	return entry{rec: rec, version: version{key: pair.ModifyIndex}, session: pair.Session, shared: shared}
}

// A rest is what is left at a key by a record whose token is above the key's index: of
// a safe that goes on from another store, or from a cluster whose keys were copied.
// Records are texts with a token too, if they were published to, or had such a token.
type rest struct {
	Election int    `json:"election"`
	Token    uint64 `json:"token"`
}

func (r rest) text() string {
	b, err := json.Marshal(r)
	if err != nil {
		panic(fmt.Sprintf("consulkv: two numbers always have a text: %v", err))
	}
	return string(b)
}

// floorOf returns the token in a value that a vacant key was left with, or 0. No
// store draws one above the largest int64, and there must be one above the floor.
func floorOf(value []byte) uint64 {
	var r rest
	if json.Unmarshal(value, &r) != nil || r.Election != 1 || r.Token >= math.MaxInt64 {
		return 0
	}
	return r.Token
}

// token returns what a new signature's text has for a token, if e is there now: 0 for
// the index of its write, which is above all that the safe's keys have. If the last
// token is above those, the new one is the next number.
func (e entry) token() uint64 {
	if last := max(e.floor, e.rec.Token); last > e.version.newest() {
		return last + 1
	}
	return 0
}

// rest returns what a record leaves at its key when it is deleted: nothing, if the
// index of any later write is above its token.
func (e entry) rest() string {
	if e.rec.Token > e.version.newest() {
		return rest{Election: 1, Token: e.rec.Token}.text()
	}
	return ""
}

// foreign returns the entry of a key that somebody else has written.
func foreign(pair *api.KVPair) entry {
	return entry{
		rec: kv.Record{
			Value: string(pair.Value), Revision: pair.ModifyIndex, Lease: pair.Session,
			Foreign: true, Permanent: pair.Session == "",
		},
		version: version{key: pair.ModifyIndex},
		session: pair.Session,
	}
}

func (e entry) vacant() bool { return e.rec == kv.Record{} }

// vacancy returns [kv.ErrVacant] if the safe is vacant.
func (e entry) vacancy() error {
	if e.vacant() {
		return kv.ErrVacant
	}
	return nil
}

// revised returns the revision that the text of the next state has, with that note:
// none, or the next one if rec is marked as shared. Each write takes at least one
// index, so that counting never overtakes the indexes of later writes.
//
// What has a note belongs to an election with an heir, whose session may come to
// back the leader's record too. It is marked with the first write that can count, so
// that a hand-over need not rewrite the heir's own record and wake all who watch it.
func (e entry) revised(note string) uint64 {
	if e.shared || note != "" {
		return e.rec.Revision + 1
	}
	return 0
}

// look reads the key, linearizably: the leader asks a majority of the servers
// whether it still leads, after the request has come in.
func (s *Store) look(ctx context.Context, key string) (entry, error) {
	query := &api.QueryOptions{RequireConsistent: true}
	if s.opts.Plain {
		return s.lookAtBoth(ctx, key, query)
	}
	var pair *api.KVPair
	err := s.conns.request(ctx, func(ctx context.Context) (err error) {
		pair, _, err = s.client.KV().Get(key, query.WithContext(ctx))
		return err
	})
	return s.decode(pair), err
}

// decode returns what pair holds where no companion belongs to it.
func (s *Store) decode(pair *api.KVPair) entry {
	if s.observed {
		return decodeObserved(pair)
	}
	return decode(pair)
}

// find reads the key and returns [kv.ErrStale] if it does not hold rec, perhaps
// with another value.
func (s *Store) find(ctx context.Context, key string, rec kv.Record) (entry, error) {
	e, err := s.look(ctx, key)
	if err == nil && !e.rec.Owns(rec) {
		err = kv.ErrStale
	}
	return e, err
}

// longestText keeps a Txn below the 512 KiB that servers take by default, with
// the text in base64 and the keys around it.
const longestText = 320 << 10

// A text is what a record's key holds, and its companion if values are plain.
type text struct{ key, companion string }

func (t text) size() int { return len(t.key) + len(t.companion) }

// encode returns the text of a record. The text of a new signature has no token
// yet: it is the index that the write of the text will have.
func (s *Store) encode(rec kv.Record) (text, error) {
	t := text{key: kv.Encode(rec)}
	if s.opts.Plain {
		t.key, rec.Value = rec.Value, ""
		t.companion = kv.Encode(rec)
	}
	if !utf8.ValidString(rec.Note) {
		return text{}, fmt.Errorf("note %.80q is no UTF-8: %w", rec.Note, kv.ErrInvalid)
	}
	return t, checkText(t.size())
}

func checkText(n int) error {
	if n > longestText {
		return fmt.Errorf("a record of %d bytes, with its value and note: want up to %d: %w", n, longestText, kv.ErrInvalid)
	}
	return nil
}

// checkNew refuses what no record can have, but for its TTL.
func checkNew(rec kv.Record) error {
	switch {
	case rec.Foreign:
		return fmt.Errorf("a foreign record cannot be written: %w", kv.ErrInvalid)
	case rec.Signature == "":
		return fmt.Errorf("a record needs a signature: %w", kv.ErrInvalid)
	case !utf8.ValidString(rec.Signature):
		return fmt.Errorf("signature %q is no UTF-8: %w", rec.Signature, kv.ErrInvalid)
	}
	return nil
}

// checkOwn refuses to touch what this library did not write.
func checkOwn(rec kv.Record) error {
	if rec.Foreign {
		return fmt.Errorf("a foreign record is left alone: %w", kv.ErrInvalid)
	}
	return checkNew(rec)
}
