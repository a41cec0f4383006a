package linear

import (
	"fmt"
	"math"
	"time"
)

// never is the end of an operation that may still happen.
const never = time.Duration(math.MaxInt64)

// A safe is the sequential model: what one safe holds between two steps of the
// story, and no more than the contract of package kv says. Two safes can be
// compared with ==.
type safe struct {
	// now is the earliest that it can be: the latest call of the steps so far,
	// or the time before which a record that was found gone could not fade. Each
	// step has to come before its operation's return.
	now time.Duration
	// over is set at the end of the history. What is left over then, of unknown
	// outcome, may happen or not: no client has seen it.
	over bool

	held             bool
	signature, value string
	note             string
	// token and revision are zero if no client was ever told them. What a record has moved from
	// does not count any more.
	token, revision uint64
	// floor is the largest token that an earlier signature can be proved to have
	// had: the next one is larger.
	floor uint64
	// The record may have faded from expires on, or from dies on.
	expires, dies time.Duration
}

// take is the step of op, which says whether the story can go on with it.
//
// A write of unknown outcome is taken only where it has an effect. If it has
// none, it is left until the end, which is as good. So is a read of unknown outcome, and
// a refresh but where it may have moved the record: it tells nothing, and makes no record fade.
func (s safe) take(op *action) (safe, bool) {
	switch {
	case s.revision == unnumbered && op.Kind != move:
		return s, false
	case s.over:
		return s, op.Outcome == Unknown
	case op.Kind == finish:
		s.over = true
		return s, true
	case op.Outcome == Invalid, op.Outcome == Unsupported:
		return s, true
	}
	s.now = max(s.now, op.Call)
	if s.now > op.end() {
		return s, false
	}
	switch op.Kind {
	case Create:
		return s.create(op)
	case Swap:
		return s.swap(op)
	case HandOver:
		return s.handOver(op)
	case Refresh:
		return s.refresh(op)
	case move:
		return s.move(op)
	case Delete:
		return s.remove(op)
	case Get:
		return s.get(op)
	default:
		return s, false
	}
}

func (s safe) create(op *action) (safe, bool) {
	switch op.Outcome {
	case Done, Unknown:
		s, ok := s.vacated(op)
		if !ok {
			return s, false
		}
		return s.sign(op)
	case Held:
		return s, s.held
	default:
		return s, false
	}
}

func (s safe) swap(op *action) (safe, bool) {
	holds := s.owned(op.Given) && s.revision == op.Given.Revision
	switch op.Outcome {
	case Done, Unknown:
		if !holds {
			return s, false
		}
		if op.Next.Signature != s.signature {
			return s.empty().sign(op)
		}
		s.value, s.note, s.revision = op.Next.Value, op.Next.Note, op.revision
		return s, op.Outcome == Unknown || s.shows(op.Got)
	case Stale:
		return s.refused(op, holds)
	default:
		return s, false
	}
}

// handOver is a swap that may have been refused for what the heir's safe held. Where a
// lease backs the heir, it is not known here how long that lives.
func (s safe) handOver(op *action) (safe, bool) {
	if op.Outcome == Stale {
		return s, true
	}
	s, ok := s.swap(op)
	if op.Next.Lease != "" {
		s.expires = op.Call
	}
	return s, ok
}

func (s safe) refresh(op *action) (safe, bool) {
	switch op.Outcome {
	case Done:
		s.expires = max(s.expires, op.Call+op.Got.TTL)
		return s, s.owned(op.Given) && s.shows(op.Got)
	case Stale:
		return s.refused(op, s.owned(op.Given))
	case Unknown: // it may have moved the record
		ok := op.moves && s.owned(op.Given) && s.revision != 0
		s.revision = 0
		return s, ok
	default:
		return s, false
	}
}

// move is the step of a refresh that leads to another revision, or to one that no client saw.
func (s safe) move(op *action) (safe, bool) {
	rec := op.Given
	if op.Outcome == Unknown {
		ok := s.owned(rec) && s.revision == rec.Revision
		s.revision = 0
		return s, ok
	}
	if !s.held || s.signature != rec.Signature || s.value != rec.Value || s.note != rec.Note {
		return s, false
	}
	if s.revision != unnumbered {
		s.now = during(op.spans, s.now, s.revision)
	}
	s.revision = op.revision
	return s, s.now <= op.end()
}

func (s safe) remove(op *action) (safe, bool) {
	switch op.Outcome {
	case Done, Unknown:
		return s.empty(), s.owned(op.Given)
	case Stale:
		return s.refused(op, s.owned(op.Given))
	case Held: // by the heir's safe
		return s, op.Place != ""
	default:
		return s, false
	}
}

func (s safe) get(op *action) (safe, bool) {
	switch op.Outcome {
	case Done:
		return s, s.held && s.shows(op.Got)
	case Vacant:
		return s.vacated(op)
	default:
		return s, false
	}
}

// refused is a step that changes nothing: the safe does not hold what op wants,
// or holds it no longer.
func (s safe) refused(op *action, holds bool) (safe, bool) {
	if !holds {
		return s, true
	}
	return s.vacated(op)
}

// owned reports whether the safe holds rec, as [kv.Record.Owns] has it.
func (s safe) owned(rec *Record) bool {
	return s.held && !rec.Foreign && s.signature == rec.Signature && s.token == rec.Token
}

// shows reports whether rec is what the safe holds.
func (s safe) shows(rec *Record) bool {
	return s.owned(rec) && !rec.Permanent && s.value == rec.Value && s.note == rec.Note && s.revision == rec.Revision
}

// sign puts op's record with its new signature into the empty safe.
func (s safe) sign(op *action) (safe, bool) {
	rec, ttl := op.written(), op.written().TTL
	if op.Kind == Create && op.Given.Shared { // its lease may have been kept alive before
		ttl -= ttl / 8
	}
	s.held, s.signature, s.value, s.note = true, rec.Signature, rec.Value, rec.Note
	s.token, s.revision, s.dies = op.token, op.revision, op.dies
	if op.Outcome == Done {
		if op.Got.TTL < ttl || !s.shows(op.Got) {
			return s, false
		}
		ttl = op.Got.TTL
	}
	s.expires = op.Call + ttl
	return s, s.token == 0 || s.token > s.floor
}

// empty takes the record out.
func (s safe) empty() safe {
	// A token that no client was told is at least the next one.
	s.floor = max(s.floor+1, s.token)
	return safe{now: s.now, floor: s.floor}
}

// vacated returns the safe without its record, if there is none or if it may
// have faded before op's end.
func (s safe) vacated(op *action) (safe, bool) {
	if !s.held {
		return s, true
	}
	s.now = max(s.now, min(s.expires, s.dies))
	return s.empty(), s.now <= op.end()
}

// String describes the safe for the picture.
func (s safe) String() string {
	switch {
	case s.over:
		return "the end"
	case !s.held:
		return fmt.Sprintf("vacant, tokens from %d", s.floor+1)
	}
	return fmt.Sprintf("%s=%q #%d @%d, fades from %v", s.signature, s.value, s.token, s.revision, min(s.expires, s.dies))
}
