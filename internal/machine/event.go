package machine

import (
	"time"

	"github.com/electkv/election/kv"
)

// A Key is one of the two keys of an election that a campaign competes for.
type Key uint8

// The keys.
const (
	Lead  Key = iota // the leader's
	Place            // the heir's
)

func (k Key) String() string { return [...]string{"leader", "heir"}[k] }

// An Op is what a request asks for.
type Op uint8

// The requests. All but Ask go to the store.
const (
	NoOp     Op = iota
	Ask         // the user's health check, before a claim
	Create      // New, if the key is vacant
	Displace    // New in the place of Old, another heir's record
	Refresh     // the TTL of Old
	Publish     // New in the place of Old, under the same signature
	HandOver    // New, the heir's, in the place of Old, if the heir's key still holds it
	Delete      // Old
	Get         // what the key holds
	Vacate      // Old, unless the heir's key holds a record: then that is the answer
	Join        // New at the end of the line before the key
	Stay        // keep the place Old in that line
)

func (o Op) String() string {
	return [...]string{"none", "ask", "create", "displace", "refresh", "publish", "hand over", "delete", "get", "vacate", "join", "stay"}[o]
}

// patient reports whether a request claims a key or looks at it.
func (o Op) patient() bool {
	switch o {
	case Create, Displace, Get, Join:
		return true
	case NoOp, Ask, Refresh, Publish, HandOver, Delete, Vacate, Stay:
	}
	return false
}

// A Request is one question to the store or to the user. A lock has one at a time on its
// way, and each gets exactly one answer.
type Request struct {
	ID     uint32
	Key    Key
	Op     Op
	Old    kv.Record
	New    kv.Record
	Heir   kv.Record     // of HandOver: what the heir's key must hold
	Within time.Duration // after which the answer is Unclear
	Shared bool          // of a Refresh: it can wait a little, to go together with others

	// Patient says that nothing depends on how soon the request is made: it is that of a candidate
	// which waits for the key. An owner's look comes before its next refresh, and a leaver's before
	// Campaign or Run can return.
	Patient bool
}

// A Verdict is the outcome of a request.
type Verdict uint8

// The verdicts. All but Unclear are definite.
const (
	OK      Verdict = iota
	Vacant          // of a Get: the key holds nothing
	Held            // refused: the key holds a record; of a Vacate: the heir's does
	Stale           // refused: the key does not hold Old
	Invalid         // refused, and always will be
	Unclear         // it may have been carried out, or not yet
)

func (v Verdict) String() string {
	return [...]string{"ok", "vacant", "held", "stale", "invalid", "unclear"}[v]
}

// An Answer is the outcome of a request.
type Answer struct {
	ID      uint32
	Key     Key
	Verdict Verdict
	Record  kv.Record
	Sent    Instant       // before the request left
	Ahead   time.Duration // of a Refresh: how much sooner the first of those it went with was asked for
	Leads   bool          // of a Stay: the place is the first, so that the key holds it
}

// A Sighting is what a watch says of a key. The zero Sighting is of a key that was not
// seen yet.
type Sighting struct {
	Known  bool
	Record kv.Record // zero if the key is vacant
}
