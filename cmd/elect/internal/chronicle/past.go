package chronicle

import (
	"slices"
	"time"

	"github.com/electkv/election"
	"github.com/electkv/election/internal/machine"
	"github.com/electkv/election/kv"
)

// recall takes in what a new leader's record, seen at a time that is now by the wall clock, tells
// of the terms before: why those that were seen have ended and, once, who led before anything was
// seen.
func (e *Election) recall(rec kv.Record, at time.Duration, now time.Time) {
	note := machine.NoteOf(rec)
	past := machine.PastOf(note.Past)
	for _, t := range past {
		e.explain(t)
	}
	if e.recalled {
		return
	}
	e.recalled = true
	when := func(unix int64, latest time.Duration) time.Duration {
		return min(at-now.Sub(time.UnixMilli(unix)), latest)
	}
	next := e.Spells[0]
	if next.State == Led && note.Since != 0 {
		next.From, next.Found, next.Told = when(note.Since, next.From), false, true
	}
	told := []Spell{next} // the newest first
	for _, t := range slices.Backward(past) {
		next := &told[len(told)-1]
		s := Spell{
			State: Led, To: when(t.Ended, next.From), Told: true,
			Owner: Owner{ID: beginning(t.ID), Token: t.Token}, End: Over, Reason: reasonOf(t),
		}
		switch {
		case t.HandedOver && next.State == Led:
			s.To, s.End = next.From, HandedOver
		case next.State == Vacant:
			next.From, next.Found, next.Told = s.To, false, true
		case s.To < next.From && next.State == Led:
			told = append(told, Spell{State: Vacant, From: s.To, To: next.From, Told: true})
		case s.To < next.From:
			told = append(told, Spell{State: Unknown, From: s.To, To: next.From})
		}
		s.From = when(t.Began, s.To)
		told = append(told, s)
	}
	slices.Reverse(told)
	e.Spells = latest(append(told, e.Spells[1:]...), mostSpells)
}

// explain takes in why a term ended, if it was seen.
func (e *Election) explain(t machine.PastTerm) {
	for i := range e.Spells {
		s := &e.Spells[i]
		if s.State != Led || s.Owner.Token != t.Token || s.To == 0 {
			continue
		}
		s.Reason = reasonOf(t)
		if t.HandedOver && e.Spells[i+1].State == Led {
			s.End = HandedOver // its heir was not seen in time
		}
	}
}

func reasonOf(t machine.PastTerm) election.Reason { return election.Reason(machine.ReasonOf(t.Why)) }

// because says in words why a term ended; nothing if nobody could say.
func because(r election.Reason) string {
	switch r {
	case election.ReasonExpired:
		return "its lease was not refreshed in time"
	case election.ReasonTaken:
		return "its record was removed or overwritten"
	case election.ReasonUnhealthy:
		return "a health check had failed"
	case election.ReasonStopped:
		return "it was told to stop"
	case election.ReasonFinished:
		return "its work had ended"
	case election.ReasonAsked:
		return "it was asked to resign or to hand over"
	case election.ReasonGaveWay:
		return "another candidate is preferred, or its term was as long as it may be"
	case election.ReasonResigned:
		return "it resigned"
	case election.ReasonGone:
	}
	return ""
}
