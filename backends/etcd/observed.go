package etcdkv

import (
	"math"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/electkv/election/internal/observer"
	"github.com/electkv/election/kv"
)

// ObservedOptions tune an [Observed]. The zero value means the defaults. All
// candidates of an election use the same Prefix and Suffix, and all of them an
// Observed.
type ObservedOptions struct {
	// Prefix, Suffix and Backstop are those of [Options].
	Prefix   string
	Suffix   string
	Backstop time.Duration
}

// An Observed is a [kv.Store] in etcd whose records have no lease: their observers
// judge when they have expired. Use [NewObserved] to make one. The package
// documentation says when to choose it.
//
// It remembers since when it has seen which record, in memory. Any number of them
// may share the client and the safes, but to share one Observed within a process
// spares what each of them has to see for itself.
type Observed struct {
	*observer.Store
	register register
}

var _ kv.Store = (*Observed)(nil)

// NewObserved returns a store that uses the client, and never closes it. Options
// may be nil.
func NewObserved(client *clientv3.Client, opts *ObservedOptions) *Observed {
	var o Options
	if opts != nil {
		o = Options{Prefix: opts.Prefix, Suffix: opts.Suffix, Backstop: opts.Backstop}
	}
	r := newRegister(client, &o)
	return &Observed{Store: observer.New(r, nil), register: r}
}

// Guard returns the conditions that the safe holds rec, for a Txn of one's own: what
// the Txn does is done by the leader or not at all, however long it was on its way.
// Name and rec are those of a term (election.Term.NamedRecord), in whatever state:
// neither a refresh nor a value that was published since changes anything.
//
//	client.Txn(ctx).If(observed.Guard(term.NamedRecord())...).Then(…)
//
// Until others have judged and replaced it, a record has the safe, though its owner
// may have stopped trusting it.
//
// The conditions are that the text at the key begins as the text of that signature
// does, and that the key is not younger than the token: a create that was delayed
// in the network brings the signature back under another one. They ask the server
// nothing, and never hold for a key that is missing, for a foreign record, or for a
// name that the store does not take.
func (o *Observed) Guard(name string, rec kv.Record) []clientv3.Cmp {
	sf, invalid := o.register.cells.safe(name)
	if invalid != nil || checkOwn(rec) != nil || rec.Token == 0 || rec.Token >= math.MaxInt64 {
		// No version is negative. The key is one that the client may read.
		return []clientv3.Cmp{clientv3.Compare(clientv3.Version(o.register.cells.opts.Prefix+"nobody"), "<", 0)}
	}
	head := signedHead(rec.Signature)
	return []clientv3.Cmp{
		clientv3.Compare(clientv3.CreateRevision(sf.start), ">", 0),
		clientv3.Compare(clientv3.CreateRevision(sf.start), "<", int64(rec.Token)+1),
		clientv3.Compare(clientv3.Value(sf.start), ">", head+","),
		clientv3.Compare(clientv3.Value(sf.start), "<", head+"-"), // the character after the comma
	}
}

// signedHead returns what all texts of a signature begin with, up to the comma
// behind it. No text of another signature does: the quotation mark at its end
// is that of the signature, since one within it would have a backslash in front.
func signedHead(signature string) string {
	text := kv.EncodeObserved(kv.Record{Signature: signature, TTL: shortestObserved})
	head, _, _ := strings.Cut(text, `,"ttl_ms":`)
	return head
}
