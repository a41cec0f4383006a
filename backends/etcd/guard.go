package etcdkv

import (
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/electkv/election/kv"
)

// Guard returns the condition that the safe holds rec, for a Txn of one's own:
// what the Txn does is done by the leader or not at all, however long it was on
// its way. Name and rec are those of a term (election.Term.NamedRecord), in whatever
// state: a value that was published since changes nothing.
//
//	client.Txn(ctx).If(store.Guard(term.NamedRecord())).Then(…)
//
// It compares the lease of the record's key, asks the server nothing, and never
// holds for a key that is missing, a record without a lease, or a name that the
// store does not take. A place in line that is not first (see [kv.Queue]) is in
// the store too, and the condition holds for it: do not guard with one.
//
// The condition is on the lease. It ends with a hand-over, as [Store.Swap] takes
// no other signature on the same lease; but if the safe is later handed back to
// that lease, it holds again, for the old record too. An heir whose candidacies
// are to be told apart needs a new lease for each.
func (s *Store) Guard(name string, rec kv.Record) clientv3.Cmp {
	sf, invalid := s.safe(name)
	id, err := leaseID(rec.Lease)
	if invalid != nil || err != nil || id == clientv3.NoLease || checkOwn(rec) != nil {
		// No version is negative. The key is one that the client may read.
		return clientv3.Compare(clientv3.Version(s.opts.Prefix+"nobody"), "<", 0)
	}
	return clientv3.Compare(clientv3.LeaseValue(sf.key(rec.Lease)), "=", id)
}
