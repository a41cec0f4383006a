package consulkv

import (
	"github.com/hashicorp/consul/api"

	"github.com/electkv/election/kv"
)

// nobody is no session's ID. An empty one would match a key that is open.
const nobody = "nobody"

// Guard returns a condition for a transaction of your own. With it, Consul carries the
// transaction out only while rec has the safe called name; Term.NamedRecord of package
// election returns both. A leader that slept through the end of its term cannot write any
// more once another is elected.
//
//	done, answer, _, err := client.KV().Txn(api.KVTxnOps{
//		store.Guard(term.NamedRecord()),
//		{Verb: api.KVSet, Key: "reports/last", Value: report},
//	}, nil)
//
// In Txn().Txn it is the KV of an [api.TxnOp]. A transaction that only reads
// needs RequireConsistent. The client's token needs key:read for the safe's key.
//
// The condition is that rec's session holds the safe's key. It stays true when
// the value is changed, and becomes false with a hand-over. A plain write over
// the key leaves it true until the session ends, and nobody else can be elected
// before that. It is never true for a foreign record.
//
// [Store.Swap] takes no other signature on the session that holds the key, and a session that
// records share locks a key for one term only; but if
// the safe is later handed back to a session that had it, the condition is true
// again, for the old record too. An heir whose candidacies are to be told apart
// needs a new session for each.
func (s *Store) Guard(name string, rec kv.Record) *api.KVTxnOp {
	session := rec.Lease
	if session == "" || rec.Foreign {
		session = nobody
	}
	return &api.KVTxnOp{Verb: api.KVCheckSession, Key: s.opts.Prefix + name, Session: session}
}
