package linear

import (
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/electkv/election/kv"
)

// A Kind says what an operation is.
type Kind string

// The kinds: five operations of a [kv.Store], that of a [kv.HandOver], and the death of
// a client, which ends the records that it signed.
const (
	Create   Kind = "create"
	Swap     Kind = "swap"
	HandOver Kind = "handover"
	Refresh  Kind = "refresh"
	Delete   Kind = "delete"
	Get      Kind = "get"
	Death    Kind = "death"
)

// An Outcome says what became of an operation.
type Outcome string

// The outcomes: it was done, it was refused for one of the reasons that package
// kv names, or it is unknown.
const (
	Done    Outcome = "done"
	Held    Outcome = "held"
	Vacant  Outcome = "vacant"
	Stale   Outcome = "stale"
	Invalid Outcome = "invalid"
	Unknown Outcome = "unknown"
	// Unsupported means that the store cannot do it at all, and did nothing.
	Unsupported Outcome = "unsupported"
)

func outcome(err error) Outcome {
	switch {
	case err == nil:
		return Done
	case errors.Is(err, kv.ErrHeld):
		return Held
	case errors.Is(err, kv.ErrVacant):
		return Vacant
	case errors.Is(err, kv.ErrStale):
		return Stale
	case errors.Is(err, kv.ErrInvalid):
		return Invalid
	case errors.Is(err, errors.ErrUnsupported):
		return Unsupported
	}
	return Unknown
}

// An Operation is what one client asked of a store, and what it was told. Times
// are counted from the start of the recording, on a monotonic clock.
type Operation struct {
	Client int           `json:"client"`
	Kind   Kind          `json:"kind"`
	Name   string        `json:"name,omitempty"`
	Call   time.Duration `json:"call_ns"`
	// Return is when the client was told. An operation of unknown outcome has no
	// end, whenever the client gave it up.
	Return  time.Duration `json:"return_ns"`
	Given   *Record       `json:"given,omitempty"` // rec, or old
	Next    *Record       `json:"next,omitempty"`  // of a swap; what a hand-over in one step puts
	Place   string        `json:"place,omitempty"` // the heir's safe; of a delete, if it has to be vacant
	Heir    *Record       `json:"heir,omitempty"`  // what it has to hold
	Share   bool          `json:"share,omitempty"` // of a refresh: as [kv.Held] has it
	Outcome Outcome       `json:"outcome,omitempty"`
	Got     *Record       `json:"got,omitempty"`
	Error   string        `json:"error,omitempty"`
}

// A Record is a [kv.Record] as it is written to a file. Its value is UTF-8, as its
// note is.
type Record struct {
	Signature string        `json:"signature"`
	Value     string        `json:"value"`
	Note      string        `json:"note,omitempty"`
	Token     uint64        `json:"token,omitempty"`
	Revision  uint64        `json:"revision,omitempty"`
	TTL       time.Duration `json:"ttl_ns,omitempty"`
	Lease     string        `json:"lease,omitempty"`
	Lasting   bool          `json:"lasting,omitempty"`
	Shared    bool          `json:"shared,omitempty"`
	Foreign   bool          `json:"foreign,omitempty"`
	Permanent bool          `json:"permanent,omitempty"`
}

func (r *Record) isText() bool {
	return utf8.ValidString(r.Signature) && utf8.ValidString(r.Value) && utf8.ValidString(r.Note)
}

// written returns the record that the operation writes, nil if it writes none.
func (op *Operation) written() *Record {
	switch op.Kind {
	case Create:
		return op.Given
	case Swap, HandOver:
		return op.Next
	default:
		return nil
	}
}

// String tells the operation in one line.
func (op *Operation) String() string {
	text := string(op.Kind)
	if op.Given != nil {
		text += " " + op.Given.String()
	}
	if op.Next != nil {
		text += " by " + op.Next.String()
	}
	if op.Outcome != "" {
		text += ": " + string(op.Outcome)
	}
	if op.Got != nil {
		text += " " + op.Got.String()
	}
	return text
}

// String tells what identifies the record.
func (r *Record) String() string {
	return fmt.Sprintf("%s=%q #%d @%d", r.Signature, r.Value, r.Token, r.Revision)
}
