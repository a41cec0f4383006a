package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/kv"
)

// A safe is a line of records, of which it holds the first. If the schedule has
// no lines, no candidate can join, and there is one record at most.
type safe struct {
	*store
	name  string // as history.Event.Safe has it
	index int

	line     []*place
	since    time.Duration  // when the safe's holder last changed
	lapsed   bool           // the safe is vacant because a record expired
	outside  []int          // old clients that are not in line yet, by their faults
	inside   map[int]uint64 // tokens of those that are, or were
	watchers []*stream
}

// A place is a record in line.
type place struct {
	rec   kv.Record
	owner string // the candidate's name; empty for an old client
	life  *life
}

// A caller is whose request is carried out, and which.
type caller struct {
	who  string
	call uint64
	op   string
	from time.Duration // when it was made
}

// write carries out one write for a candidate.
func (f *safe) write(do func() answer) (a answer) {
	f.change(func() {
		if f.down {
			a.err = errDown
			return
		}
		a = do()
	})
	return a
}

// change changes the line, and tells of what the safe then holds.
func (f *safe) change(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.first()
	do()
	f.admit()
	now := f.first()
	if now.Signature != before.Signature || now.Token != before.Token {
		f.holds()
	}
	if now != before {
		f.tell()
	}
}

// holds notes which record the safe holds from now on.
func (f *safe) holds() {
	f.since = f.w.Now()
	e := history.Event{Kind: history.Holds}
	if len(f.line) > 0 {
		e.Who, e.Token, e.Value = f.line[0].owner, f.line[0].rec.Token, f.line[0].rec.Value
	}
	f.tells(e)
	if f.name == "" {
		f.w.turn(e.Who, e.Token)
	}
}

// tells notes something of this safe.
func (f *safe) tells(e history.Event) {
	e.Safe = f.name
	f.w.Note(e)
}

// first returns what the safe holds: the zero record if it is vacant.
func (f *safe) first() kv.Record {
	if len(f.line) == 0 {
		return kv.Record{}
	}
	return f.line[0].rec
}

// find returns where a record is in line, or -1. Adapters refuse to touch foreign records.
// This store does what it is asked, so that it shows which candidate asks.
func (f *safe) find(rec kv.Record) int {
	return slices.IndexFunc(f.line, func(p *place) bool {
		return p.rec.Owns(rec) || p.rec.Foreign && p.rec == rec
	})
}

// note notes that a request has changed the line.
func (f *safe) note(by caller, token uint64) {
	f.tells(history.Event{Who: by.who, Kind: history.Committed, Op: by.op, Call: by.call, Token: token})
}

// create puts a record into a vacant safe.
func (f *safe) create(by caller, rec kv.Record) answer {
	if len(f.line) > 0 {
		return answer{err: kv.ErrHeld}
	}
	return f.add(by, rec)
}

// join puts a record at the end of the line, unless its signature is there.
func (f *safe) join(by caller, rec kv.Record) answer {
	for _, p := range f.line {
		if p.rec.Signature == rec.Signature {
			return answer{rec: p.rec}
		}
	}
	return f.add(by, rec)
}

// add gives a record its token and its place at the end of the line.
func (f *safe) add(by caller, rec kv.Record) answer {
	p := &place{owner: by.who, rec: f.sign(rec)}
	f.owners[rec.Signature] = by.who
	f.note(by, p.rec.Token)
	f.enter(p)
	return answer{rec: p.rec}
}

// sign makes a new signature's record of what a candidate asks for.
func (f *safe) sign(rec kv.Record) kv.Record {
	n := f.next()
	return kv.Record{Signature: rec.Signature, Value: rec.Value, Note: rec.Note, TTL: f.w.Store.grant(rec.TTL), Token: n, Revision: n}
}

// enter puts a place at the end of the line.
func (f *safe) enter(p *place) {
	at := len(f.line)
	if f.w.Store.Rude {
		at = min(at, 1)
	}
	f.line = slices.Insert(f.line, at, p)
	f.lapsed = false
	f.begin(p)
	f.live(p.life, f.w.Now(), f.span(p.rec))
}

// swap replaces the first in line.
func (f *safe) swap(by caller, old, next kv.Record) answer {
	if !f.at(old) {
		return answer{err: kv.ErrStale}
	}
	p := f.line[0]
	if next.Signature == old.Signature { // a value change is no refresh
		p.rec.Value, p.rec.Note, p.rec.Revision = next.Value, next.Note, f.next()
		f.note(by, p.rec.Token)
		return answer{rec: p.rec}
	}
	if len(f.line) > 1 {
		return answer{err: kv.ErrStale}
	}
	return f.handOver(by, p, next, true)
}

// handOverFrom replaces the first in line by an heir that is first in a line of its own.
// All safes share the mutex.
func (f *safe) handOverFrom(by caller, old kv.Record, own *safe, heir kv.Record, note string) answer {
	switch {
	case heir.Signature == old.Signature:
		return answer{err: fmt.Errorf("sim: the heir has the signature of the record: %w", kv.ErrInvalid)}
	case !f.at(old) || !own.at(heir) || len(f.line) > 1:
		return answer{err: kv.ErrStale}
	}
	next := heir
	next.Note = note
	return f.handOver(by, f.line[0], next, false)
}

// handOver puts another signature in the place of one. It is as bad as the
// contract allows: what backs the record from then on is made to live from the
// start of the call, and the write is late. What has a lease may be renewed for it.
func (f *safe) handOver(by caller, p *place, next kv.Record, renews bool) answer {
	l, shared := f.lives[next.Lease]
	switch {
	case next.Lease == "":
	case !shared:
		return answer{err: fmt.Errorf("sim: the lease is gone: %w", kv.ErrStale)}
	case l == p.life:
		return answer{err: fmt.Errorf("sim: the lease is the one that backs the record: %w", kv.ErrInvalid)}
	}
	f.leave(p)
	signed, owner := f.owners[next.Signature]
	p.owner, p.rec = by.who, f.sign(next)
	if owner {
		p.owner = signed
	}
	f.owners[next.Signature] = p.owner
	f.note(by, p.rec.Token)
	if !shared {
		f.begin(p)
		f.live(p.life, by.from, f.span(p.rec))
		return answer{rec: p.rec}
	}
	p.rec.Lease, p.life = next.Lease, l
	l.places = append(l.places, p)
	if span := f.span(p.rec); renews && f.clock.After(by.from, span) > l.expires {
		f.live(l, by.from, span)
	}
	return answer{rec: p.rec}
}

// refresh starts the life of the first in line anew, and stay that of any other.
func (f *safe) refresh(by caller, rec kv.Record) answer {
	if f.find(rec) != 0 {
		return answer{err: kv.ErrStale}
	}
	return f.stay(by, rec)
}

func (f *safe) stay(by caller, rec kv.Record) answer {
	i := f.find(rec)
	if i < 0 {
		return answer{err: kv.ErrStale}
	}
	p := f.line[i]
	f.note(by, p.rec.Token)
	f.live(p.life, f.w.Now(), f.span(p.rec))
	return answer{rec: p.rec, leads: i == 0}
}

// remove takes a record from the line.
func (f *safe) remove(by caller, rec kv.Record) answer {
	i := f.find(rec)
	if i < 0 {
		return answer{err: kv.ErrStale}
	}
	f.note(by, 0)
	f.drop(f.line[i])
	return answer{}
}

// vacate does so if the line of another safe is empty. All safes share the mutex.
func (f *safe) vacate(by caller, rec kv.Record, own *safe) answer {
	if len(own.line) > 0 {
		return answer{rec: own.line[0].rec, err: kv.ErrHeld}
	}
	return f.remove(by, rec)
}

// drop takes a place from the line, if it is there.
func (f *safe) drop(p *place) {
	f.leave(p)
	f.line = slices.DeleteFunc(f.line, func(other *place) bool { return other == p })
	f.lapsed = false
}

func (f *safe) isLapsed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lapsed
}

// tell sends the present state to all watchers.
func (f *safe) tell() {
	for _, st := range f.watchers {
		st.push(sight{rec: f.first()})
	}
}

// get returns what the safe holds.
func (f *safe) get() (kv.Record, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down {
		return kv.Record{}, errDown
	}
	return state(f.first())
}

func state(rec kv.Record) (kv.Record, error) {
	if rec == (kv.Record{}) {
		return rec, kv.ErrVacant
	}
	return rec, nil
}

// watch sends the present state and every change to a stream, until it is
// forgotten or the store goes down.
func (f *safe) watch(st *stream) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.down {
		st.push(sight{broken: true})
		return
	}
	if st.gone {
		return
	}
	if !slices.Contains(f.watchers, st) {
		f.watchers = append(f.watchers, st)
	}
	st.push(sight{rec: f.first()})
}

func (f *safe) forget(st *stream) {
	f.mu.Lock()
	defer f.mu.Unlock()
	st.gone = true
	f.watchers = slices.DeleteFunc(f.watchers, func(other *stream) bool { return other == st })
}

// watches returns how many watches a candidate has on this safe.
func (f *safe) watches(n *Node) (count int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, st := range f.watchers {
		if st.l.node == n {
			count++
		}
	}
	return count
}

// empty takes the safe's record away as an operator would: until its leader finds
// out, or its trust has run out, two may lead.
func (f *safe) empty() {
	f.change(func() {
		rec := f.first()
		if f.down || rec.Foreign || rec == (kv.Record{}) {
			return
		}
		within := rec.TTL
		if f.w.quiet(f.w.TTL, Remove) { // then its next refresh tells
			within = f.w.TTL / 2
		}
		f.tells(history.Event{Kind: history.Interfered, Token: rec.Token, Within: within, Text: "an operator deletes the record"})
		f.drop(f.line[0])
	})
}

// enqueue lets an old client, which uses the safe for a lock, wait for it.
func (f *safe) enqueue(client int) {
	f.change(func() { f.outside = append(f.outside, client) })
}

// admit lets old clients in: to the end of the line, or if there are no lines,
// into a vacant safe.
func (f *safe) admit() {
	for len(f.outside) > 0 && !f.down && (f.w.Store.Lines || len(f.line) == 0) {
		n := f.next()
		rec := kv.Record{Value: fmt.Sprintf("locked by hand %d", f.outside[0]), Foreign: true, Permanent: true, Token: n, Revision: n}
		f.inside[f.outside[0]], f.outside = n, f.outside[1:]
		f.tells(history.Event{Kind: history.Placed, Value: rec.Value, Token: n, Text: "somebody else's record"})
		f.enter(&place{rec: rec})
	}
}

// dequeue takes an old client away again, and reports what has become of its
// record.
func (f *safe) dequeue(client int) {
	f.change(func() {
		f.outside = slices.DeleteFunc(f.outside, func(other int) bool { return other == client })
		token, placed := f.inside[client]
		if !placed {
			return
		}
		e := history.Event{Kind: history.Found, Token: token, Value: f.first().Value}
		i := slices.IndexFunc(f.line, func(p *place) bool { return p.rec.Foreign && p.rec.Token == token })
		if i >= 0 {
			e.Value = f.line[i].rec.Value
		}
		f.tells(e)
		if i >= 0 {
			f.drop(f.line[i])
		}
	})
}

// isOf reports whether a candidate's record is in the safe. Where observers judge, one
// that is older than its TTL may have faded for all of them.
func (f *safe) isOf(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	faded := f.w.Store.Expiry == ByObserver && f.since <= f.w.Now()-f.w.TTL
	return len(f.line) > 0 && f.line[0].owner == name && !faded
}

// has reports whether a token is in line.
func (f *safe) has(token uint64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.line, func(p *place) bool { return p.rec.Token == token })
}

// queue returns the owners of the records in line, in order, and since when the first is there.
func (f *safe) queue() (owners []string, since time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.line {
		owners = append(owners, p.owner)
	}
	return owners, f.since
}

// holder returns the token of the record in the safe, zero if it is vacant, and how
// long that lives if it is not refreshed.
func (f *safe) holder() (token uint64, left time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.line) == 0 {
		return 0, 0
	}
	return f.line[0].rec.Token, f.line[0].life.expires - f.w.Now()
}
