package machine

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

const (
	mostPast    = 64     // terms that a leader's note tells of
	longestPast = 3 << 8 // bytes that they take at most: so that Redis still refreshes the record with others
	pastUnit    = 100    // milliseconds: how exactly they are told
)

// A PastTerm is a term that is over, as candidates tell each other for people to read. Times are
// in Unix milliseconds, by the clocks of different hosts.
type PastTerm struct {
	ID           string
	Token        uint64
	Began, Ended int64
	Why          byte // it ended: a lower-case letter, of which ReasonOf makes a word
	HandedOver   bool // to the next
}

// A Past is terms that are over, in the order of their tokens.
type Past []PastTerm

// Merge returns the newest terms of two pasts, of which neither must be used again. Of a term that is in both, the one that says
// more is kept: that it was handed over, or why it ended.
func (p Past) Merge(other Past) Past {
	if len(other) == 0 {
		return p
	}
	if len(p) == 0 || p[len(p)-1].Token < other[0].Token {
		p = append(p, other...)
		return p[max(len(p)-mostPast, 0):]
	}
	all := slices.Concat(p, other)
	slices.SortStableFunc(all, func(a, b PastTerm) int {
		switch {
		case a.Token != b.Token && a.Token < b.Token:
			return -1
		case a.Token != b.Token:
			return 1
		}
		return b.says() - a.says()
	})
	all = slices.CompactFunc(all, func(a, b PastTerm) bool { return a.Token == b.Token })
	return all[max(len(all)-mostPast, 0):]
}

// Before returns the terms before one.
func (p Past) Before(token uint64) Past {
	for len(p) > 0 && p[len(p)-1].Token >= token {
		p = p[:len(p)-1]
	}
	return p
}

// says returns how much a term says of its end.
func (t PastTerm) says() (n int) {
	if t.HandedOver {
		n += 2
	}
	if t.Why != Gone {
		n++
	}
	return n
}

// Gone is why a term ended of which only that is known.
const Gone = 'g'

// reasons are why a term ended, with the letter that stands for each.
var reasons = [...]struct { //nolint:gochecknoglobals // constant
	letter byte
	word   string
}{
	{'e', "expired"},
	{'t', "taken"},
	{'u', "unhealthy"},
	{'s', "stopped"},
	{'f', "finished"},
	{'a', "asked"},
	{'w', "gave_way"},
	{'r', "resigned"},
	{Gone, "gone"},
}

// LetterOf returns the letter of a reason, and Gone for one that has none.
func LetterOf(reason string) byte {
	for _, r := range reasons {
		if r.word == reason {
			return r.letter
		}
	}
	return Gone
}

// ReasonOf returns the reason that a letter stands for: "gone" if none is known.
func ReasonOf(letter byte) string {
	for _, r := range reasons {
		if r.letter == letter {
			return r.word
		}
	}
	return "gone"
}

// Text returns the newest terms that fit into a note:
//
//	ID,ID…:ID,token,began,lastedWID,token,began,lastedW+…
//
// After the colon an ID is its place before it. Tokens, beginnings and durations are in base 36;
// the first two count from the token and the end of the term before. W is a capital letter that
// says why it ended; a plus, that the term was handed over to the next.
func (p Past) Text() string {
	for p = p[max(len(p)-mostPast, 0):]; len(p) > 0; p = p[1:] {
		if text := p.text(); len(text) <= longestPast {
			return text
		}
	}
	return ""
}

func (p Past) text() string {
	var (
		ids   []string
		last  PastTerm
		terms = make([]byte, 0, longestPast)
	)
	for _, t := range p {
		place := slices.Index(ids, t.ID)
		if place < 0 {
			place, ids = len(ids), append(ids, t.ID)
		}
		began, ended := t.Began/pastUnit, max(t.Ended, t.Began)/pastUnit
		for _, n := range []int64{int64(place), int64(t.Token - last.Token), began - last.Ended, ended - began} { //nolint:gosec // in base 36, and back
			terms = append(strconv.AppendInt(terms, n, 36), ',')
		}
		terms[len(terms)-1] = t.Why - 'a' + 'A'
		if t.HandedOver {
			terms = append(terms, '+')
		}
		last = PastTerm{Token: t.Token, Ended: ended}
	}
	for i := range ids {
		ids[i] = url.QueryEscape(ids[i])
	}
	return strings.Join(ids, ",") + ":" + string(terms)
}

// PastOf reads a text. It is empty if the text makes no sense.
func PastOf(text string) Past {
	if len(text) > longestPast+1 {
		return nil
	}
	head, tail, _ := strings.Cut(text, ":")
	var (
		p    Past
		ids  = strings.Split(head, ",")
		last PastTerm
	)
	for tail != "" {
		var n [4]int64
		end := strings.IndexFunc(tail, func(r rune) bool { return 'A' <= r && r <= 'Z' })
		if end < 0 || len(p) == mostPast {
			return nil
		}
		fields, why := strings.Split(tail[:end], ","), tail[end]-'A'+'a'
		if len(fields) != len(n) {
			return nil
		}
		var plus bool
		tail, plus = strings.CutPrefix(tail[end+1:], "+")
		for i := range n {
			var err error
			if n[i], err = strconv.ParseInt(fields[i], 36, 64); err != nil {
				return nil
			}
		}
		if n[0] < 0 || n[0] >= int64(len(ids)) || n[1] <= 0 || n[3] < 0 {
			return nil
		}
		id, err := url.QueryUnescape(ids[n[0]])
		if err != nil {
			return nil
		}
		began := last.Ended + n[2]
		last = PastTerm{Token: last.Token + uint64(n[1]), Ended: began + n[3]}
		p = append(p, PastTerm{
			ID: id, Token: last.Token, Began: began * pastUnit, Ended: last.Ended * pastUnit,
			Why: why, HandedOver: plus,
		})
	}
	return p
}

// handedOver returns a text whose last term was handed over.
func handedOver(text string) string {
	if text == "" || strings.HasSuffix(text, "+") {
		return text
	}
	return text + "+"
}
