package coexist

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Shut returns the longest time between from and to in which nobody of a kind
// held, and when it began. Whoever asks sees to it that somebody of the kind
// wanted in and could have come all the time.
func Shut(terms []Term, old bool, from, to time.Duration) (longest, since time.Duration) {
	kind := slices.DeleteFunc(slices.Clone(terms), func(t Term) bool { return t.Old != old })
	slices.SortFunc(kind, func(a, b Term) int { return cmp.Compare(a.Begin, b.Begin) })
	at := from
	for _, t := range kind {
		if begin := min(t.Begin, to); begin-at > longest {
			longest, since = begin-at, at
		}
		at = max(at, min(t.End, to))
	}
	if to-at > longest {
		longest, since = to-at, at
	}
	return longest, since
}

// Order returns what is wrong with the order of the tokens: each term's is to be
// larger than those of all terms that began before. Terms without a token are
// left out.
func Order(terms []Term) []string {
	terms = slices.Clone(terms)
	slices.SortStableFunc(terms, func(a, b Term) int { return cmp.Compare(a.Begin, b.Begin) })
	wrong, last := []string{}, Term{}
	for _, t := range terms {
		if t.Token == 0 {
			continue
		}
		if t.Token <= last.Token {
			wrong = append(wrong, fmt.Sprintf("%s began after %s", name(t), name(last)))
		}
		last = t
	}
	return wrong
}

// Row returns how often in a row the store showed a record of one kind and none
// of the other.
func Row(sightings []Sighting, old bool) (longest int) {
	row := 0
	for _, seen := range sightings {
		if seen.Old != old {
			row = 0
			continue
		}
		row++
		longest = max(longest, row)
	}
	return longest
}
