package election

import (
	"reflect"
	"slices"
)

// A Contender is a candidate or a leader, as the order of succession sees it.
type Contender struct {
	ID    string   // Options.ID
	Rank  int      // Options.Rank
	Heirs []string // of a leader: the candidates that should follow it, in order
}

// A Succession is an order: it reports whether candidate a comes before candidate b
// when the term of leader ends. leader is the candidate that leads, or the last one
// that is known to have led, or a zero Contender if none is known.
//
// It must be a pure function of its arguments and the same in every candidate of an
// election. For each leader it must be a strict weak order: no candidate comes before
// itself, and if a comes before b and b before c, then a comes before c. Candidates
// of which neither comes before the other are equal, and keep the order in which they
// came.
//
// The leader is compared too: it gives way to an heir that comes before it.
//
// An order decides who is heir, never who leads. Candidates that disagree for a
// while, or whose order is inconsistent, elect the wrong one, but never two.
type Succession func(leader, a, b Contender) bool

// FirstCome is the order in which candidates became heir. No heir is displaced.
func FirstCome(_, _, _ Contender) bool { return false }

// isFirstCome reports whether this is FirstCome, in which no order needs to be computed.
func (s Succession) isFirstCome() bool {
	return reflect.ValueOf(s).Pointer() == reflect.ValueOf(FirstCome).Pointer()
}

// ByRank puts higher ranks first, and leaves candidates of equal rank in the order in
// which they came. A leader gives way to an heir of higher rank, once that has been heir
// for Options.Stability. Choose it if some hosts are better leaders than others:
// larger, or nearer to the data, for example.
//
// It is the preference of the bully algorithm (Garcia-Molina, "Elections in a
// Distributed Computing System", IEEE Transactions on Computers C-31(1), 1982)
// without its messages. Candidates of lower rank wait a little longer before they
// compete; that comes from Murshed and Allen
// ("Enhanced Bully Algorithm for Leader Node Election in Synchronous Distributed
// Systems", Computers 1(1), 2012).
func ByRank(_, a, b Contender) bool { return a.Rank > b.Rank }

// Ring puts the IDs in a ring, in the order of Go's strings, and goes round it
// from the leader: the leader itself, those with larger IDs, then those with
// smaller ones, from the smallest. While no leader is known, it goes by
// ID. No heir makes a leader give way. Choose it together with Options.MaxTerm, so
// that leadership rotates among all candidates that are alive.
//
// A ring of processes is how Chang and Roberts elect ("An improved algorithm for
// decentralized extrema-finding in circular configurations of processes",
// Communications of the ACM 22(5), 1979). There the largest ID wins; here the ring
// says only who is next.
func Ring(leader, a, b Contender) bool {
	if behindA, behindB := a.ID < leader.ID, b.ID < leader.ID; behindA != behindB {
		return behindB
	}
	return a.ID < b.ID
}

// ByList follows the list that the leader publishes, Options.Heirs or what it
// set by Term.SetHeirs: first the leader itself, then the candidates in the list, in
// order, then all others, which are equal. No heir makes a leader give way. Choose it
// if the leader knows best who can take over: the candidate with the newest copy of
// its state, for example.
//
// The idea of alternates that a leader names beforehand comes from Gholipour et al.
// (2009).
func ByList(leader, a, b Contender) bool {
	return placeInList(leader, a) < placeInList(leader, b)
}

// placeInList returns the place of a candidate in the leader's list. The leader comes before
// all that are listed, and candidates that are not listed come after them.
func placeInList(leader, c Contender) int {
	if c.ID == leader.ID {
		return -1
	}
	if i := slices.Index(leader.Heirs, c.ID); i >= 0 {
		return i
	}
	return len(leader.Heirs)
}
