package oracle

import (
	"cmp"
	"slices"
	"time"

	"github.com/electkv/election/internal/history"
)

// A request is one of a candidate's, with its answer if there was any.
type request struct {
	sent, answered history.Event
	committed      bool // the store says so
}

// A ledger holds what a candidate asked of the store about one safe and was shown there.
type ledger struct {
	requests []request // in the order in which they were sent
	unclear  []request // those of them that may have put something in
	seen     []history.Event
	longest  time.Duration // TTL that was granted
	place    *ledger       // about the heir's safe; nil in that itself
}

// ledgers opens the ledgers, once if rules judge one history.
func (e Evidence) ledgers() (byWho map[string]*ledger, commits bool) {
	if e.once != nil {
		return e.once()
	}
	return e.open()
}

// open returns the ledger of each candidate, and whether the store noted what it
// committed.
func (e Evidence) open() (byWho map[string]*ledger, commits bool) {
	byWho, commits = ledgersOf(e.Events, "")
	places, _ := ledgersOf(e.Whole.Events, history.Heir)
	for who, l := range byWho {
		l.place = places[who]
	}
	return byWho, commits
}

func ledgersOf(events []history.Event, safe string) (byWho map[string]*ledger, commits bool) {
	byWho = map[string]*ledger{}
	type id struct {
		who  string
		call uint64
	}
	index := map[id]int{}
	for i := range events {
		ev := &events[i]
		if ev.Safe != safe {
			continue
		}
		l := byWho[ev.Who]
		if l == nil {
			l = &ledger{}
			byWho[ev.Who] = l
		}
		switch ev.Kind {
		case history.Sent:
			index[id{ev.Who, ev.Call}] = len(l.requests)
			l.requests = append(l.requests, request{sent: *ev})
		case history.Answered:
			if i, ok := index[id{ev.Who, ev.Call}]; ok {
				l.requests[i].answered = *ev
				l.longest = max(l.longest, ev.TTL)
			}
		case history.Committed:
			commits = true
			if i, ok := index[id{ev.Who, ev.Call}]; ok {
				l.requests[i].committed = true
			}
		case history.Seen:
			l.seen = append(l.seen, *ev)
		}
	}
	for _, l := range byWho {
		for _, r := range l.requests {
			if r.puts() != "" && r.answered.Result == history.Unknown {
				l.unclear = append(l.unclear, r)
			}
		}
	}
	return byWho, commits
}

// puts returns the signature of the record that a request puts in, if it does.
func (r request) puts() string {
	if r.enters() {
		return r.sent.Signature
	}
	return r.sent.Next
}

// grants reports whether a request was answered with a lease under token. To
// publish a value, which is a swap, grants none. A place in line is granted as a
// record is: it becomes one without any request.
func (r request) grants(token uint64) bool {
	return (r.enters() || r.sent.Op == "refresh" || r.sent.Op == "stay") &&
		r.answered.Result == history.OK && r.answered.Token == token
}

// enters reports whether a request puts in a record that was not there.
func (r request) enters() bool { return r.sent.Op == "create" || r.sent.Op == "join" }

// proof returns the request that allows a leader to trust its lease until
// trust.Until, as far as answers before trust.At go: one whose answer was a
// success under its token and that was sent no more than TTL − margin before, by
// a clock that may run slow. If there are several, it is the one answered first.
// A create or join whose answer was lost is proof if its record was seen
// afterwards, or was found by another join, which proves no more than that.
func (e Evidence) proof(l *ledger, trust history.Event) (r request, found bool) {
	for _, r := range l.before(trust) {
		if !r.grants(trust.Token) || r.answered.At > trust.At {
			continue
		}
		if first, ok := l.doubtful(r.sent); ok && r.sent.Op == "join" {
			first.answered, first.committed = r.answered, first.committed || r.committed
			r = first
		}
		if e.allows(r.sent, r.answered.TTL, trust) {
			return r, true
		}
	}
	for _, seen := range l.seen {
		if seen.Token != trust.Token || seen.At > trust.At {
			continue
		}
		if r, ok := l.doubtful(seen); ok {
			return r, e.allows(r.sent, seen.TTL, trust)
		}
		if r, ok := e.placed(l.place, seen.Lease, trust); ok {
			return r, true
		}
	}
	return request{}, false
}

// placed returns the request that allows an heir to trust at once what was handed over to
// it: one that was granted for its own place, whose lease backs the leader's record too.
func (e Evidence) placed(place *ledger, lease string, trust history.Event) (r request, found bool) {
	if place == nil || lease == "" {
		return request{}, false
	}
	for _, r := range place.before(trust) {
		if r.backs(lease) && r.answered.At <= trust.At && e.allows(r.sent, r.answered.TTL, trust) {
			return r, true
		}
	}
	for _, seen := range place.seen {
		if seen.At <= trust.At && seen.Lease == lease {
			if r, ok := place.doubtful(seen); ok {
				return r, e.allows(r.sent, seen.TTL, trust)
			}
		}
	}
	return request{}, false
}

// backs reports whether a request was answered with a record that a lease backs, which it
// has made or kept alive. To publish keeps nothing alive.
func (r request) backs(lease string) bool {
	keeps := r.enters() || r.sent.Op == "refresh" || r.sent.Op == "swap" && r.sent.Next != ""
	return keeps && r.answered.Result == history.OK && r.answered.Lease == lease
}

// allows reports whether a lease of ttl may be trusted as long as trust says if
// it was granted to a request that was sent when sent says.
func (e Evidence) allows(sent history.Event, ttl time.Duration, trust history.Event) bool {
	span := ttl - e.Margin
	return trust.Until <= sent.At+span+time.Duration(float64(span)*e.Drift/(1-e.Drift))
}

// before returns the requests that were sent before a term was trusted, those
// left out whose leases are over by then.
func (l *ledger) before(trust history.Event) []request {
	sent := func(r request, at time.Duration) int { return cmp.Compare(r.sent.At, at) }
	from, _ := slices.BinarySearchFunc(l.requests, trust.Until-2*l.longest, sent)
	to, _ := slices.BinarySearchFunc(l.requests, trust.At+1, sent)
	return l.requests[min(from, to):to]
}

// doubtful returns the first request with an unclear answer that may have
// put in the record that was seen. It is not known which of several it was; the store has
// carried one of them out, or none.
func (l *ledger) doubtful(seen history.Event) (first request, found bool) {
	for _, r := range l.unclear {
		if r.sent.At > seen.At {
			break
		}
		if r.puts() == seen.Signature {
			if !found {
				first, found = r, true
			}
			first.committed = first.committed || r.committed
		}
	}
	return first, found
}

// DeadlineFromSend is the rule that a leader trusts its lease until TTL −
// margin after the send of a request that was granted, and no longer.
func DeadlineFromSend(e Evidence) Finding {
	f := Finding{Promise: "deadline from the send"}
	if len(e.Of("", history.Sent)) == 0 || len(e.Terms) == 0 {
		return f.silent("no requests were noted")
	}
	ledgers, _ := e.ledgers()
	n := 0
	for _, t := range e.Terms {
		for _, trust := range t.Trusts {
			if _, ok := e.proof(ledgers[t.Who], trust); !ok {
				return f.broken("%s trusted its lease for %s from when it said so: no request that was granted allows that", name(t), seconds(trust.Until-trust.At))
			}
			n++
		}
	}
	return f.kept(n, "%d deadlines, each within TTL − margin of a request sent", n)
}

// NoResurrection is the rule that a term that has run out stays ended, whatever
// the store says later: an extension rests on an answer that came before the
// deadline.
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
			if r, ok := e.proof(ledgers[t.Who], trust); ok && r.answered.At >= deadline {
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

// ProvenExtension is the rule that a deadline moves only by a success that the
// store really granted to this very record. It needs a store that notes what it
// commits.
func ProvenExtension(e Evidence) Finding {
	f := Finding{Promise: "extension only on proof"}
	ledgers, commits := e.ledgers()
	if !commits {
		return f.silent("the store noted nothing")
	}
	n := 0
	for _, t := range e.Terms {
		for _, trust := range t.Trusts {
			if r, ok := e.proof(ledgers[t.Who], trust); !ok || !r.committed {
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
