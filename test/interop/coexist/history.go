package coexist

import (
	"strings"
	"time"

	"github.com/electkv/election/internal/history"
)

// Terms reads the terms out of a sorted history, of processes whose names begin
// with "old" and of others, which are of this library. It uses the events as
// package history describes them, but for these:
//
//   - Elected of an old lock has its right in Until, zero if that is not known;
//     Value is the owner;
//   - Ended of an old lock has in Until when it will ask for its release at the
//     earliest, zero if never.
//
// A term of this library ends with its context: when its leader knew of it, when
// it was killed, or when the trust ran out that it last wrote down. One of an old
// lock ends when its holder knew of it or was killed, else never: to is when the
// history ends.
func Terms(h history.History, to time.Duration) []Term {
	terms := []Term{}
	open := map[string]int{} // the term that has not ended of each process
	dead := map[string]bool{}
	for _, e := range h.Events {
		i, leads := open[e.Who]
		switch e.Kind {
		case history.Ready:
			dead[e.Who] = false
		case history.Elected:
			if leads { // its end was not told
				terms[i].End = min(terms[i].End, e.At)
			}
			t := Term{Who: e.Who, Old: IsOld(e.Who), Owner: e.Value, Token: e.Token, Begin: e.At, End: to}
			if t.Old {
				t.Right = e.Until
			} else {
				t.End = e.Until
			}
			if dead[e.Who] { // it was about to be
				t.End = e.At
			} else {
				open[e.Who] = len(terms)
			}
			terms = append(terms, t)
		case history.Extended:
			if leads && terms[i].Old {
				terms[i].Right = max(terms[i].Right, e.Until)
			} else if leads {
				terms[i].End = max(terms[i].End, e.Until)
			}
		case history.Ended:
			if leads {
				terms[i].End = min(terms[i].End, e.At)
				terms[i].Released = e.Until
				delete(open, e.Who)
			}
		case history.Killed:
			dead[e.Who] = true
			if leads {
				terms[i].End = min(terms[i].End, e.At)
				delete(open, e.Who)
			}
		}
	}
	return terms
}

// IsOld reports whether a process is one with an old lock, by its name.
func IsOld(who string) bool { return strings.HasPrefix(who, "old") }
