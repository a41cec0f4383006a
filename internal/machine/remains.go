package machine

import "github.com/electkv/election/kv"

// Remains say what our requests have left, or may leave, in one key of the store. Every
// record that a campaign makes is accounted for here, from the send of the request until
// it is known that the record is not there and will not come.
type Remains struct {
	Kind RemainsKind
	// Since is when the first request of an unknown outcome was sent. For Possible, and for
	// Stray if Doubt. For Offered, when the key was first looked at, if that is not once.
	Since Instant
	// Doubt is set if another request of an unknown outcome may put a record there when the
	// present one is removed. For Stray.
	Doubt bool
	// Ref is to what is there. For Stray, Handed and Mine.
	Ref
}

// stray returns what remains when a record was found that must not be used to lead.
func (r Remains) stray(rec kv.Record) Remains {
	doubt := r.Kind == Possible || r.Kind == Stray && r.Doubt
	return Remains{Kind: Stray, Ref: RefTo(rec), Since: r.Since, Doubt: doubt}
}

// removed returns what remains when a stray record was removed.
func (r Remains) removed() Remains {
	if r.Kind == Stray && r.Doubt {
		return Remains{Kind: Possible, Since: r.Since}
	}
	return Remains{}
}

// A RemainsKind is one case of Remains.
type RemainsKind uint8

// The cases.
const (
	// Nothing of ours is there, and no request that could put it there is on its way
	// under the present signature.
	Nothing RemainsKind = iota
	// Possible: a request had no clear answer. Its record may be there, now or later.
	// Found, it is worth what it was when the first such request was sent.
	Possible
	// Offered: the leader may have put our signature there, or may do so as long as our
	// record as heir stands.
	Offered
	// Stray: a record of ours is there that must not be used to lead. It came too late, or
	// under a signature that had ended. It is to be removed.
	Stray
	// Handed: the leader put our signature there. It is trusted once it has been
	// refreshed, or by the lease that backs it if that is our own.
	Handed
	// Mine: the record that we hold.
	Mine
)

func (k RemainsKind) String() string {
	return [...]string{"nothing", "possible", "offered", "stray", "handed", "mine"}[k]
}
