package linear

import (
	"math"
	"slices"
	"time"
)

// move is the kind of the action by which a record comes to have another revision, and all else
// stays as it was: what a refresh does with a record that may share a lease ([kv.Held.Share]). In
// the history it is only seen. No refresh tells how often its record moved.
const move Kind = "move"

// unnumbered is the revision of what a write of unknown outcome has put, if several were seen of
// that: the next step is a move and tells which was the first.
const unnumbered = math.MaxUint64 - 1

// A span is a stretch of time in which a record may move: if told is not zero, from that
// revision only.
type span struct {
	from, to time.Duration
	told     uint64
}

// A sight is a revision that people were told: there it was at some moment before by, when the
// first had been told, and at some moment after last, when the last one asked.
type sight struct {
	revision uint64
	by, last time.Duration
}

// see adds a revision that a client was told.
func see(all []sight, revision uint64, asked, told time.Duration) []sight {
	i := slices.IndexFunc(all, func(s sight) bool { return s.revision == revision })
	if i < 0 {
		return append(all, sight{revision, told, asked})
	}
	all[i].by, all[i].last = min(all[i].by, told), max(all[i].last, asked)
	return all
}

// after returns from when on a revision can be there, if those that came before it are over.
func (s sight) after(all []sight) (begin time.Duration) {
	for _, other := range all {
		if other.revision != s.revision && other.by < s.last {
			begin = max(begin, other.last)
		}
	}
	return begin
}

// moving finds the refreshes that may move their records, and when those of each signature may:
// those with Share, and any refresh of a record later than the call that has first let it share a
// lease. One that was answered may have left a move on its way, from the revision that it told.
//
// A move that no client saw matters only to a swap that was refused.
func (s *story) moving() map[string][]span {
	shares := make(map[string]time.Duration) // from when on
	for _, a := range s.actions {
		if a.Kind == Refresh && a.Share || a.Kind == Create && a.Given.Shared {
			from, ok := shares[a.Given.Signature]
			if !ok || a.Call < from {
				shares[a.Given.Signature] = a.Call
			}
		}
	}
	type place struct {
		signature string
		revision  uint64
	}
	refused := make(map[place]bool) // at which swaps were refused; at any if the revision is zero
	for _, a := range s.actions {
		if a.Kind == Swap && a.Outcome == Stale {
			refused[place{a.Given.Signature, a.Given.Revision}] = true
			refused[place{a.Given.Signature, 0}] = true
		}
	}
	spans := make(map[string][]span)
	for _, a := range s.actions {
		if a.Kind != Refresh || a.Outcome != Done && a.Outcome != Unknown {
			continue
		}
		from, ok := shares[a.Given.Signature]
		if !ok || from > a.Call {
			continue
		}
		a.moves = a.Outcome == Unknown && refused[place{a.Given.Signature, 0}]
		all := append(spans[a.Given.Signature], span{from: a.Call, to: a.end()})
		if a.Outcome == Done {
			all = append(all, span{from: a.Return, to: never, told: a.Got.Revision})
		}
		if told := (place{a.Given.Signature, all[len(all)-1].told}); told.revision != 0 && refused[told] {
			delete(refused, told) // once is enough
			s.moves = append(s.moves, &action{
				Operation: &Operation{Client: a.Client, Kind: move, Name: s.name, Outcome: Unknown, Given: a.Got, Call: a.Return},
			})
		}
		spans[a.Given.Signature] = all
	}
	return spans
}

// settle notes at a write the revision that it gave, and puts into the story the moves that have
// led to the other revisions that were seen. Each move came before a client was told.
func (s *story) settle(a *action, seen []sight, spans []span) {
	switch {
	case a.Got != nil:
		a.revision = a.Got.Revision
	case len(seen) == 1:
		a.revision = seen[0].revision
	case len(seen) > 1:
		a.revision = unnumbered
	}
	for _, other := range seen {
		if other.revision == a.revision {
			continue
		}
		s.moves = append(s.moves, &action{
			Operation: &Operation{
				Client: a.Client, Kind: move, Name: s.name, Outcome: Done, Given: a.written(),
				Call: min(max(a.Call, other.after(seen)), other.by), Return: other.by,
			},
			token: a.token, revision: other.revision, spans: spans,
		})
	}
}

// during returns the earliest moment from now on in which a record may move from a revision, and
// never if there is none.
func during(spans []span, now time.Duration, revision uint64) time.Duration {
	earliest := never
	for _, s := range spans {
		if now <= s.to && (s.told == 0 || s.told == revision) {
			earliest = min(earliest, max(now, s.from))
		}
	}
	return earliest
}
