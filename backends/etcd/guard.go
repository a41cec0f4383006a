package etcdkv

import (
	"math"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/electkv/election/kv"
)

// Guard returns the conditions that the safe holds rec, for a Txn of your own: what the
// Txn does is done by the leader or not at all, however long it was on its way. Name and
// rec are those of a term (election.Term.NamedRecord), in whatever state: a value that
// was published since changes nothing.
//
//	client.Txn(ctx).If(store.Guard(term.NamedRecord())...).Then(…)
//
// The conditions are that the text at the record's key begins as the text of that
// signature does, that the key has a lease, and that it is not younger than the token: a
// create that was delayed in the network brings the signature back under another one.
// Where the key does not have the text, with Options.Plain, or is one of many, in a line,
// they are also that the key has the record's lease. They ask the server nothing, and
// never hold for a key that is missing, for a foreign record, or for a name that the
// store does not take. A place in line that is not first (see [kv.Queue]) is in the store
// too, and the conditions hold for it: do not guard with such a place.
//
// The conditions are about the term. So they no longer hold after a hand-over, even if
// the safe comes back to the same candidate: each candidacy has its own signature.
func (s *Store) Guard(name string, rec kv.Record) []clientv3.Cmp {
	sf, invalid := s.safe(name)
	id, err := leaseID(rec.Lease)
	if invalid != nil || err != nil || checkOwn(rec) != nil || rec.Token == 0 || rec.Token >= math.MaxInt64 {
		// No version is negative. The key is one that the client may read.
		return []clientv3.Cmp{clientv3.Compare(clientv3.Version(s.opts.Prefix+"nobody"), "<", 0)}
	}
	key, text := sf.key(rec.Lease), sf.key(rec.Lease)
	if sf.plain {
		text = sf.companion(key)
	}
	head := sf.head(rec.Signature)
	guard := []clientv3.Cmp{
		clientv3.Compare(clientv3.CreateRevision(key), ">", 0),
		clientv3.Compare(clientv3.CreateRevision(key), "<", int64(rec.Token)+1),
		clientv3.Compare(clientv3.Value(text), ">", head+","),
		clientv3.Compare(clientv3.Value(text), "<", head+"-"), // the character after the comma
	}
	switch {
	case sf.observed:
	case sf.plain || sf.lined():
		guard = append(guard, clientv3.Compare(clientv3.LeaseValue(key), "=", id))
	default:
		guard = append(guard, clientv3.Compare(clientv3.LeaseValue(key), "!=", clientv3.NoLease))
	}
	return guard
}

// head returns what all texts of a signature begin with, up to the comma behind it. No
// text of another signature does: the quotation mark at its end is that of the signature,
// since one within it would have a backslash in front.
func (sf safe) head(signature string) string {
	head, _, _ := strings.Cut(sf.encode(kv.Record{Signature: signature, TTL: time.Second}), `,"ttl_ms":`)
	return head
}
