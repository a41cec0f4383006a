package consulkv

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/hashicorp/consul/api"
)

// companionSuffix makes the key of a companion from a safe's key.
const companionSuffix = ".election"

// companion returns the key at which the record stands if the value stands at
// the safe's key by itself.
func companion(key string) string { return key + companionSuffix }

// lookAtBoth reads the key and its companion in one Txn.
func (s *Store) lookAtBoth(ctx context.Context, key string, query *api.QueryOptions) (entry, error) {
	found, err := s.transact(ctx, []*api.KVTxnOp{
		{Verb: api.KVGetOrEmpty, Key: key},
		{Verb: api.KVGetOrEmpty, Key: companion(key)},
	}, query)
	if err != nil {
		return entry{}, err
	}
	if len(found) != 2 {
		return entry{}, fmt.Errorf("permission denied: the client needs key:read for %q and for %q", key, companion(key))
	}
	for i, pair := range found {
		if pair.ModifyIndex == 0 {
			found[i] = nil // there is no such key
		}
	}
	return decodeBoth(found[0], found[1]), nil
}

// decodeBoth returns what a safe with plain values holds. The key alone tells
// whether somebody holds the safe, as it does for api.Lock. It is ours if the
// companion has a record that was written last by the Txn that wrote the key
// last, and the same session holds both: whoever writes or deletes one of them
// ends that, and so does a session's end.
//
// What stands at the companion of a vacant safe is the rest of an old record, or
// else somebody's key that happens to have this name, which is not to be harmed.
func decodeBoth(key, companion *api.KVPair) entry {
	e, beside := decode(key), decode(companion)
	e.version.companion = beside.version.key
	e.floor = max(e.floor, beside.floor, beside.rec.Token) // the latter if somebody has deleted the key
	switch {
	case e.vacant() && (beside.rec.Foreign || beside.vacant() && !leftover(companion)):
		e.rec = foreign(companion).rec
	case e.vacant() || key.Flags != api.LockFlagValue:
	case proves(companion, key):
		e.rec, e.shared = beside.rec, beside.shared // foreign, if it is from the future
		e.rec.Value = string(key.Value)
	default:
		e.rec, e.shared = foreign(key).rec, false
		// The loss of a companion has changed the record, but not the key.
		e.rec.Revision = ^e.rec.Revision
	}
	return e
}

// leftover reports whether a companion that nobody holds is what a record has left, of this
// release or a later one, or holds nothing. Anything else is somebody's, who may have released it
// with the flags of a lock.
func leftover(companion *api.KVPair) bool {
	if companion == nil || len(companion.Value) == 0 {
		return true
	}
	var left struct {
		Election int `json:"election"`
	}
	return json.Unmarshal(companion.Value, &left) == nil && left.Election > 0
}

func proves(companion, key *api.KVPair) bool {
	return companion != nil && companion.ModifyIndex == key.ModifyIndex && companion.Session == key.Session
}
