package oracle

import (
	"github.com/electkv/election/internal/history"
)

// NothingLeft is the rule that a candidate that has returned has left nothing running,
// no place in line, and no record that keeps others out.
func NothingLeft(e Evidence) Finding {
	f := Finding{Promise: "nothing is left running"}
	n := 0
	for _, left := range e.Of("", history.Left) {
		if left.Count > 0 {
			return f.broken("%s returned and left %d behind: %s", left.Who, left.Count, left.Text)
		}
		n++
	}
	if n == 0 {
		return f.silent("nobody returned")
	}
	return f.kept(n, "%d returned", n)
}

// RequestsBounded is the rule that no candidate sends more requests within a
// TTL than it may, whatever goes wrong: nothing spins.
func RequestsBounded(e Evidence) Finding {
	f := Finding{Promise: "requests are bounded"}
	if e.Requests == 0 || e.TTL == 0 {
		return f.silent("no bound was given")
	}
	recent := map[string][]history.Event{}
	most, n := 0, 0
	for _, sent := range e.Whole.Of("", history.Sent) {
		window := append(recent[sent.Who], sent)
		for window[0].At <= sent.At-e.TTL {
			window = window[1:]
		}
		recent[sent.Who] = window
		if len(window) > e.Requests {
			return f.broken("%s sent %d requests within %s; at most %d", sent.Who, len(window), seconds(sent.At-window[0].At), e.Requests)
		}
		most = max(most, len(window))
		n++
	}
	if n == 0 {
		return f.silent("no requests were noted")
	}
	return f.kept(n, "%d requests, at most %d of one candidate within a TTL", n, most)
}

// ForeignUnharmed is the rule that a record of another program in the safe is
// still there when it is looked for.
func ForeignUnharmed(e Evidence) Finding {
	f := Finding{Promise: "foreign records unharmed"}
	placed, n := map[uint64]string{}, 0 // by token, which tells those in one line apart
	for _, ev := range e.Of("", history.Placed, history.Found) {
		switch {
		case ev.Kind == history.Placed:
			placed[ev.Token] = ev.Value
		case ev.Value != placed[ev.Token]:
			return f.broken("%.40q was put into the safe by somebody else, and %.40q is there now", placed[ev.Token], ev.Value)
		default:
			n++
		}
	}
	if n == 0 {
		return f.silent("no foreign record was looked for")
	}
	return f.kept(n, "%d times found as it was left", n)
}
