package consulkv

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/hashicorp/consul/api"

	"github.com/electkv/election/kv"
)

// An entry is what a key holds, if anything.
type entry struct {
	rec     kv.Record // zero if the safe is vacant
	index   uint64    // the key's ModifyIndex, 0 if there is no such key
	session string    // holds the key, if not empty

	// shared means that the session backs, or has backed, another record too.
	// The text of such a record has a revision of its own, and the text of every
	// other one has none: its revision is the key's ModifyIndex. So a hand-over
	// can mark the heir's own record without changing it.
	shared bool
}

// decode returns what pair holds, which is nil if there is no such key.
//
// The lock flags make a key a lock; a lock without a session is open, whatever
// value its last owner left there.
func decode(pair *api.KVPair) entry {
	if pair == nil {
		return entry{}
	}
	e := entry{index: pair.ModifyIndex, session: pair.Session}
	switch lock := pair.Flags == api.LockFlagValue; {
	case lock && pair.Session == "":
		return e
	case lock:
		e.rec = kv.Decode(string(pair.Value))
	default:
		e.rec = kv.Record{Value: string(pair.Value), Foreign: true}
	}
	e.shared = !e.rec.Foreign && e.rec.Revision != 0
	e.rec.Lease = pair.Session
	e.rec.Permanent = pair.Session == ""
	if !e.shared {
		e.rec.Revision = e.index
	}
	if e.rec.Token == 0 && !e.rec.Foreign {
		e.rec.Token = e.index
	}
	return e
}

func (e entry) vacant() bool { return e.rec == kv.Record{} }

// vacancy returns [kv.ErrVacant] if the safe is vacant.
func (e entry) vacancy() error {
	if e.vacant() {
		return kv.ErrVacant
	}
	return nil
}

// revised returns the revision that the text of rec's next state has: none, or
// the next one if rec is marked as shared. Each write takes at least one index,
// so that counting never overtakes the indexes of later writes.
func (e entry) revised() uint64 {
	if e.shared {
		return e.rec.Revision + 1
	}
	return 0
}

// look reads the key, linearizably: the leader asks a majority of the servers
// whether it still leads, after the request has come in.
func (s *Store) look(ctx context.Context, key string) (entry, error) {
	query := &api.QueryOptions{RequireConsistent: true}
	pair, _, err := s.client.KV().Get(key, query.WithContext(ctx))
	return decode(pair), err
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

// encode returns the text of a record. The text of a new signature has no token
// yet: it is the index that the write of the text will have.
func encode(rec kv.Record) (string, error) {
	text := kv.Encode(rec)
	return text, checkText(len(text))
}

func checkText(n int) error {
	if n > longestText {
		return fmt.Errorf("a record of %d bytes: want up to %d: %w", n, longestText, kv.ErrInvalid)
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
