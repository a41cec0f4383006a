package history

import "time"

// A Kind is what an Event reports.
type Kind string

// What candidates report of themselves. They write it down before they act on
// it: before they expose a state, before they send a request.
const (
	Ready    Kind = "ready"    // campaigns
	Elected  Kind = "elected"  // leads, under Token, trusted until Until
	Extended Kind = "extended" // trusts its lease until Until
	Worked   Kind = "worked"   // asked whether it leads, at At or later, and was told yes
	Ended    Kind = "ended"    // knows that its term is over, and why (Text)
	Started  Kind = "started"  // was called to do a leader's work
	Finished Kind = "finished" // has stopped that work
	Left     Kind = "left"     // has returned; Count goroutines too many are left
)

// What candidates ask of the store, and see there.
const (
	Sent     Kind = "sent"     // is about to send request number Call: Op, with Signature and Token
	Answered Kind = "answered" // the answer to Call: Result, and the Token and TTL granted
	Seen     Kind = "seen"     // a get or a watch showed a record: Signature, Token, TTL
)

// What others report: the store of a simulation, and a resource that checks
// fencing tokens.
const (
	Committed Kind = "committed" // the store carried out Call of Who, a write
	Accepted  Kind = "accepted"  // the resource took a write of Who under Token
	Refused   Kind = "refused"   // the resource refused it: it has seen a larger one
)

// What is done to the candidates, their network and their store. It is noted
// right before it is done.
const (
	Killed     Kind = "killed"     // Who is sent SIGKILL
	Stopped    Kind = "stopped"    // Who is sent SIGSTOP
	Woken      Kind = "woken"      // Who is sent SIGCONT
	Fault      Kind = "fault"      // something begins to go wrong: Text
	Healed     Kind = "healed"     // it is put right again: Text
	Interfered Kind = "interfered" // an operator touched the record, of Token if known: until Within later two may lead
	Placed     Kind = "placed"     // somebody else's record was put into the safe: Value
	Found      Kind = "found"      // and this is what is there now: Value
)

// What is promised about it.
const (
	Due  Kind = "due"  // At most Within later somebody leads, other than Who if given, for Text
	Keep Kind = "keep" // Who leads under Token still Within later
)

// The results of a request, in Event.Result.
const (
	OK      = "ok"
	Held    = "held"
	Stale   = "stale"
	Vacant  = "vacant"
	Invalid = "invalid"
	Unknown = "unknown" // any other error: it may have been carried out, or may yet be
)

// An Event is one thing that happened. What its fields mean depends on Kind.
type Event struct {
	At        time.Duration `json:"at"` // on the one clock that all events share
	Who       string        `json:"who,omitempty"`
	Kind      Kind          `json:"kind"`
	Token     uint64        `json:"token,omitempty"`
	Until     time.Duration `json:"until,omitempty"` // on the same clock as At
	Op        string        `json:"op,omitempty"`
	Call      uint64        `json:"call,omitempty"` // numbers the requests of Who
	Signature string        `json:"signature,omitempty"`
	TTL       time.Duration `json:"ttl,omitempty"`
	Result    string        `json:"result,omitempty"`
	Within    time.Duration `json:"within,omitempty"`
	Count     int           `json:"count,omitempty"`
	Value     string        `json:"value,omitempty"`
	Text      string        `json:"text,omitempty"`
}
