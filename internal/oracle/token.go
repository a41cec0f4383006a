package oracle

import (
	"fmt"
	"strings"

	"github.com/electkv/election/internal/history"
)

// TokensGrow is the rule that each term has a larger token than the one before.
func TokensGrow(e Evidence) Finding {
	f := Finding{Promise: "tokens grow"}
	if len(e.Terms) == 0 {
		return f.silent("nobody was elected")
	}
	largest := uint64(0)
	for i, t := range e.Terms {
		if t.End <= t.Begin {
			continue // it was over before it was told of, and never led
		}
		if i > 0 && t.Token <= largest && !e.touched(t) {
			return f.broken("%s was elected with token %d after token %d", t.Who, t.Token, largest)
		}
		largest = max(largest, t.Token)
	}
	return f.kept(len(e.Terms), "%s", row(e.Terms))
}

// row writes down the tokens, those in the middle left out if they are many.
func row(terms []history.Stretch) string {
	texts := []string{}
	for i, t := range terms {
		switch {
		case len(terms) <= 6 || i < 3 || i >= len(terms)-2:
			texts = append(texts, fmt.Sprint(t.Token))
		case i == 3:
			texts = append(texts, "…")
		}
	}
	return strings.Join(texts, " < ")
}

// FenceHolds is the rule that the resource never takes a write under a token
// smaller than one that it has seen.
func FenceHolds(e Evidence) Finding {
	f := Finding{Promise: "the fence holds"}
	largest, accepted, refused := uint64(0), 0, 0
	for _, w := range e.Of("", history.Accepted, history.Refused) {
		switch {
		case w.Kind == history.Refused:
			refused++
			continue
		case w.Token < largest:
			return f.broken("a write of %s was taken under token %d after one under %d", w.Who, w.Token, largest)
		}
		largest = w.Token
		accepted++
	}
	if accepted+refused == 0 {
		return f.silent("nobody wrote")
	}
	return f.kept(accepted+refused, "%d writes taken, %d stale ones refused", accepted, refused)
}
