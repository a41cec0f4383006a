package history

import (
	"encoding/json"
	"time"
)

// A Kind is what an Event reports.
type Kind string

// What candidates report of themselves. They write it down before they act on
// it: before they expose a state, before they send a request.
const (
	Ready    Kind = "ready"    // campaigns
	Became   Kind = "became"   // has another role in the succession: Value
	Elected  Kind = "elected"  // leads, under Token, trusted until Until
	Extended Kind = "extended" // trusts its lease until Until
	Worked   Kind = "worked"   // asked whether it leads, at At or later, and was told yes
	Ended    Kind = "ended"    // knows that its term is over, and why (Text; Value: the reason of election_terms_ended_total, if the leader can tell)
	Started  Kind = "started"  // was called to do a leader's work
	Finished Kind = "finished" // has stopped that work
	Left     Kind = "left"     // has returned; Count things too many are left: Text
)

// What the core of a candidate's campaign was given, and what it decided: in Trace, as
// package trace writes it. It is written down before that is carried out.
const (
	Begun   Kind = "begun"   // a campaign begins
	Stepped Kind = "stepped" // it took a step, at At
)

// What candidates ask of the store, and see there.
const (
	Sent     Kind = "sent"     // is about to send request number Call: Op, with Signature and Token; of a hand-over, Next
	Answered Kind = "answered" // the answer to Call: Result, and the Token and TTL granted
	Seen     Kind = "seen"     // a get or a watch showed a record: Signature, Token, TTL
)

// What others report: the store of a simulation, and a resource that checks
// fencing tokens.
const (
	Committed Kind = "committed" // the store carried out Call of Who, a write: Op, and the Token of what it wrote
	Holds     Kind = "holds"     // the safe holds another record from now on, of Who or of another program (Value): Token, zero if it is vacant
	Accepted  Kind = "accepted"  // the resource took a write of Who under Token
	Refused   Kind = "refused"   // the resource refused it: it has seen a larger one
)

// What a candidate's process answered over HTTP, noted by those who asked: at At they began to ask,
// and Within later the answer was there. Result is Unknown if none came.
const (
	// Said means that Who was asked whether it leads: Yes, under Token, or No.
	Said Kind = "said"
	// Scraped means that Who's metrics were asked for: Count is election_is_leader, Token is
	// election_token, and Ends is election_terms_ended_total.
	Scraped Kind = "scraped"
)

// The outcomes of requests to a leader to make room.
const (
	// Transferred means that Who, leading under Token, was told to hand over to
	// Value, with the outcome Result. Text is why its term is over, if it is.
	Transferred Kind = "transferred"
	// Replied means that Who has asked the leader from outside, Within before: Op
	// (resign, transfer), to Value, with the outcome Result.
	Replied Kind = "replied"
)

// What the processes of package group report. They have no elections: Started and Finished are
// about the work for a Group that Who leads.
const (
	Joined Kind = "joined" // is in Group from now on; if that is zero, in none
)

// What is done to the candidates, their network and their store. It is noted
// right before it is done.
const (
	Killed     Kind = "killed"     // Who is sent SIGKILL
	Stopped    Kind = "stopped"    // Who is sent SIGSTOP
	Woken      Kind = "woken"      // Who is sent SIGCONT
	Asked      Kind = "asked"      // Who is asked to give the leadership up: Text
	Fault      Kind = "fault"      // something begins to go wrong: Text
	Healed     Kind = "healed"     // it is put right again: Text
	Interfered Kind = "interfered" // an operator touched the record, of Token if known: until Within later two may lead
	Placed     Kind = "placed"     // another program's record was put into the safe, or in line: Value, and Token if known
	Found      Kind = "found"      // and this is what is there now: Value
)

// What is promised about it.
const (
	Due  Kind = "due"  // At most Within later a candidate leads, other than Who if given, for Text
	Keep Kind = "keep" // Who leads under Token still Within later
	// Waits means that Who has campaigned for so long while others had the safe
	// that it must be in line: Count is its place there, zero if it has none.
	Waits Kind = "waits"
	// Passes means that the safe goes from Who, under Token, to Value, at most Within
	// later and without having been vacant.
	Passes Kind = "passes"
	// Idle means that Who waits, and is not even next: Count is how many watches it
	// has on the leader's safe, and it sends nothing until Within later.
	Idle Kind = "idle"
	// Preferred means that one of those leads at this time whose names are in Value,
	// apart by spaces.
	Preferred Kind = "preferred"
	// Settled means that the leader has changed at most Count times until now.
	Settled Kind = "settled"
	// Share means that Who has led for at most Within in all until now.
	Share Kind = "share"
	// Grouped means that at most Within later, the groups in Value exist, each with a leader that
	// works. Spaces separate the members' names, and " | " separates groups.
	Grouped Kind = "grouped"
	// Met means that what Grouped promised was true after Within. Text says it in words.
	Met Kind = "met"
)

// The results of a request, in Event.Result.
const (
	OK      = "ok"
	Held    = "held"
	Stale   = "stale"
	Vacant  = "vacant"
	Invalid = "invalid"
	NoHeir  = "no heir" // of a transfer: the candidate asked for does not stand
	// Unsupported means that the store cannot do this at all, and did nothing.
	Unsupported = "unsupported"
	Unknown     = "unknown" // any other error: it may have been carried out, or may yet be
)

// The answers to whether a candidate leads, in Event.Result.
const (
	Yes = "yes"
	No  = "no"
)

// Heir is, in Event.Value, the role of the candidate that is next, and in Event.Safe the
// heir's safe. Request is the safe that requests to a leader are put in.
const (
	Heir    = "heir"
	Request = "request"
)

// An Event is one thing that happened. What its fields mean depends on Kind.
type Event struct {
	At        time.Duration  `json:"at"` // on the one clock that all events share
	Who       string         `json:"who,omitempty"`
	Kind      Kind           `json:"kind"`
	Safe      string         `json:"safe,omitempty"` // which one, if not the leader's
	Token     uint64         `json:"token,omitempty"`
	Until     time.Duration  `json:"until,omitempty"` // on the same clock as At
	Op        string         `json:"op,omitempty"`
	Call      uint64         `json:"call,omitempty"` // numbers the requests of Who
	Signature string         `json:"signature,omitempty"`
	Next      string         `json:"next,omitempty"` // the signature that a swap or handover puts in, if that is another
	TTL       time.Duration  `json:"ttl,omitempty"`
	Lease     string         `json:"lease,omitempty"` // that backs the record of an Answered or Seen
	Result    string         `json:"result,omitempty"`
	Within    time.Duration  `json:"within,omitempty"`
	Count     int            `json:"count,omitempty"`
	Ends      map[string]int `json:"ends,omitempty"` // how many terms have ended, by reason
	Value     string         `json:"value,omitempty"`
	Text      string         `json:"text,omitempty"`
	Group     Group          `json:"group,omitzero"`

	Trace json.RawMessage `json:"trace,omitempty"`
}
