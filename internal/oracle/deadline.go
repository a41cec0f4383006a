package oracle

import (
	"time"

	"github.com/electkv/election/internal/history"
)

// A request is one of a candidate's, with its answer if there was any.
type request struct {
	sent, answered history.Event
	committed      bool // the store says so
}

// A ledger holds what a candidate asked of the store and was shown there.
type ledger struct {
	requests []request // in the order in which they were sent
	seen     []history.Event
}

// ledgers returns the ledger of each candidate, and whether the store noted
// what it committed.
func (e Evidence) ledgers() (byWho map[string]*ledger, commits bool) {
	byWho = map[string]*ledger{}
	type id struct {
		who  string
		call uint64
	}
	index := map[id]int{}
	for _, ev := range e.Events {
		l := byWho[ev.Who]
		if l == nil {
			l = &ledger{}
			byWho[ev.Who] = l
		}
		switch ev.Kind {
		case history.Sent:
			index[id{ev.Who, ev.Call}] = len(l.requests)
			l.requests = append(l.requests, request{sent: ev})
		case history.Answered:
			if i, ok := index[id{ev.Who, ev.Call}]; ok {
				l.requests[i].answered = ev
			}
		case history.Committed:
			commits = true
			if i, ok := index[id{ev.Who, ev.Call}]; ok {
				l.requests[i].committed = true
			}
		case history.Seen:
			l.seen = append(l.seen, ev)
		}
	}
	return byWho, commits
}

// grants reports whether a request was answered with a lease under token.
func (r request) grants(token uint64) bool {
	return (r.sent.Op == "create" || r.sent.Op == "refresh" || r.sent.Op == "swap") &&
		r.answered.Result == history.OK && r.answered.Token == token
}

// proof returns the request that allows a leader to trust its lease until
// trust.Until, as far as answers before trust.At go: one whose answer was a
// success under its token and that was sent no more than TTL − margin before. If
// there are several, it is the one answered first. A create whose answer was
// lost is proof if its record was seen afterwards.
func (l *ledger) proof(trust history.Event, margin time.Duration) (r request, found bool) {
	for _, r := range l.requests {
		if r.sent.At > trust.At {
			break
		}
		if r.grants(trust.Token) && r.answered.At <= trust.At && trust.Until <= r.sent.At+r.answered.TTL-margin {
			return r, true
		}
	}
	for _, seen := range l.seen {
		if seen.Token != trust.Token || seen.At > trust.At {
			continue
		}
		for _, r := range l.requests {
			if r.sent.Op == "create" && r.sent.Signature == seen.Signature && r.answered.Result == history.Unknown && r.sent.At <= seen.At {
				// Which of several such creates it was, nobody knows: the first.
				return r, trust.Until <= r.sent.At+seen.TTL-margin
			}
		}
	}
	return request{}, false
}

// DeadlineFromSend: a leader trusts its lease until TTL − margin after the send
// of a request that was granted, and no longer (I2).
func DeadlineFromSend(e Evidence) Finding {
	f := Finding{Promise: "deadline from the send"}
	if len(e.Of("", history.Sent)) == 0 || len(e.Terms) == 0 {
		return f.silent("no requests were noted")
	}
	ledgers, _ := e.ledgers()
	n := 0
	for _, t := range e.Terms {
		for _, trust := range t.Trusts {
			if _, ok := ledgers[t.Who].proof(trust, e.Margin); !ok {
				return f.broken("%s trusted its lease for %s from when it said so: no request that was granted allows that", name(t), seconds(trust.Until-trust.At))
			}
			n++
		}
	}
	return f.kept(n, "%d deadlines, each within TTL − margin of a request sent", n)
}

// NoResurrection: a term that has run out stays ended, whatever the store says
// later (I3): an extension rests on an answer that came before the deadline.
func NoResurrection(e Evidence) Finding {
	f := Finding{Promise: "no resurrection"}
	if len(e.Of("", history.Sent)) == 0 {
		return f.silent("no requests were noted")
	}
	ledgers, _ := e.ledgers()
	n := 0
	for _, t := range e.Terms {
		for i, trust := range t.Trusts[1:] {
			deadline := t.Trusts[i].Until
			if r, ok := ledgers[t.Who].proof(trust, e.Margin); ok && r.answered.At >= deadline {
				return f.broken("%s was extended by an answer that came %s after its deadline", name(t), seconds(r.answered.At-deadline))
			}
			n++
		}
	}
	if n == 0 {
		return f.silent("no term was extended")
	}
	return f.kept(n, "%d extensions, each of a term that was alive", n)
}

// ProvenExtension: a deadline moves only by a success that the store really
// granted to this very record (I4). It needs a store that notes what it commits.
func ProvenExtension(e Evidence) Finding {
	f := Finding{Promise: "extension only on proof"}
	ledgers, commits := e.ledgers()
	if !commits {
		return f.silent("the store noted nothing")
	}
	n := 0
	for _, t := range e.Terms {
		for _, trust := range t.Trusts {
			if r, ok := ledgers[t.Who].proof(trust, e.Margin); !ok || !r.committed {
				return f.broken("%s trusted its lease until %s on the word of request %d (%s), which the store never carried out", name(t), seconds(trust.Until), r.sent.Call, r.sent.Op)
			}
			n++
		}
	}
	if n == 0 {
		return f.silent("nobody was elected")
	}
	return f.kept(n, "%d grants, each carried out by the store", n)
}
