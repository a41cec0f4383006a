package oracle

import (
	"slices"
	"time"

	"github.com/electkv/election/internal/history"
)

// Asked returns the rules about what candidates answer over HTTP. They are not among All: in a
// simulation nobody asks.
func Asked() []Rule { return []Rule{AnswersInTime, ScrapesInTime} }

// AnswersInTime is the rule that no candidate says that it leads to a question that was asked when
// its term was over.
func AnswersInTime(e Evidence) Finding {
	f := Finding{Promise: "/leader is never 200 past trust"}
	asked := e.Of("", history.Said)
	if len(asked) == 0 {
		return f.silent("nobody was asked")
	}
	if who := e.mute(asked); who != "" {
		return f.broken("%s was asked again and again, and never answered", who)
	}
	over := e.over()
	yes, late := 0, 0
	for _, ev := range asked {
		if ev.Result != history.Yes {
			continue
		}
		yes++
		if why := e.untrue(ev, over); why != "" {
			return f.broken("%s said that it leads under token %d, %s", ev.Who, ev.Token, why)
		}
	}
	for i, t := range e.Terms {
		late += len(within(asked, t.Who, over[i], over[i]+e.TTL))
	}
	return f.kept(len(asked), "%d times yes while it was so; %d questions in the TTL after a term", yes, late)
}

// ScrapesInTime is the rule that the end of a term is seen by the next scrape: it shows that the
// candidate does not lead, or the candidate does not answer it. When it knows of the end, it has the
// pause between two scrapes to count it, with its reason, and on a slow machine the slack as well.
func ScrapesInTime(e Evidence) Finding {
	f := Finding{Promise: "the next scrape sees each end"}
	scrapes := e.Of("", history.Scraped)
	if len(scrapes) == 0 {
		return f.silent("nobody was scraped")
	}
	if who := e.mute(scrapes); who != "" {
		return f.broken("%s was scraped again and again, and never answered", who)
	}
	over := e.over()
	for _, ev := range scrapes {
		if ev.Count == 0 {
			continue
		}
		if why := e.untrue(ev, over); why != "" {
			return f.broken("a scrape shows that %s leads under token %d, %s", ev.Who, ev.Token, why)
		}
	}
	seen, counted := 0, 0
	for _, t := range e.Terms {
		if len(within(scrapes, t.Who, t.End, never)) > 0 {
			seen++
		}
	}
	for _, ended := range e.Of("", history.Ended) {
		later := within(scrapes, ended.Who, ended.At+e.Scrape+e.Slack, e.life(ended))
		i := slices.IndexFunc(later, func(ev history.Event) bool { return ev.Result == history.OK })
		if i < 0 {
			continue // it has left, or the history ends
		}
		if lacks := e.uncounted(ended, later[i].Ends); lacks != "" {
			return f.broken("a scrape %s after %s knew that its term under token %d was over does not count it as %s",
				seconds(later[i].At-ended.At), ended.Who, ended.Token, lacks)
		}
		counted++
	}
	if seen == 0 && followed(e.Terms) {
		return f.silent("no scrape came after the end of a term")
	}
	return f.kept(len(scrapes), "%d scrapes; %d ends were seen by the next one, and %d counted in time", len(scrapes), seen, counted)
}

// followed reports whether a term was over when another began.
func followed(terms []history.Stretch) bool {
	for i := 1; i < len(terms); i++ {
		if terms[i].Begin >= terms[i-1].End {
			return true
		}
	}
	return false
}

// mute returns a candidate that was asked again and again and answered nothing, though its process has
// returned in order; "" if there is none.
func (e Evidence) mute(asked []history.Event) string {
	for _, left := range e.Of("", history.Left) {
		all := within(asked, left.Who, 0, left.At)
		if len(all) > few && !slices.ContainsFunc(all, func(ev history.Event) bool { return ev.Result != history.Unknown }) {
			return left.Who
		}
	}
	return ""
}

// few is how many questions may come before a candidate is there, and after it.
const few = 3

// within returns the questions to a candidate that were asked from one time on and before another.
func within(asked []history.Event, who string, from, to time.Duration) []history.Event {
	found := []history.Event{}
	for _, ev := range asked {
		if ev.Who == who && from <= ev.At && ev.At < to {
			found = append(found, ev)
		}
	}
	return found
}

// untrue returns why a candidate cannot have led under the token at any time between the question
// and the answer; "" if it may have. A term that was over before its work began was not
// written down: then the requests decide.
func (e Evidence) untrue(ev history.Event, over []time.Duration) string {
	late := never
	for i, t := range e.Terms {
		if t.Who == ev.Who && t.Token == ev.Token {
			late = min(late, ev.At-over[i])
		}
	}
	switch ledgers, _ := e.ledgers(); {
	case late < 0:
		return ""
	case late < never:
		return "to a question that was asked " + seconds(late) + " after its term"
	case ledgers[ev.Who] != nil:
		trust := history.Event{Token: ev.Token, At: ev.At + ev.Within, Until: ev.At}
		if _, ok := e.proof(ledgers[ev.Who], trust); ok {
			return ""
		}
	}
	return "and no request that was granted allows that"
}

// over returns when each term was over for certain: its trust had run out, or the leader knew that it
// was lost or resigned, or had sent what gives the safe up. A leader that is told to stop, or has no
// more to do, leads until then. One that was killed says nothing more, so its trust tells.
func (e Evidence) over() []time.Duration {
	over := make([]time.Duration, len(e.Terms))
	signs := e.Of("", history.Ended, history.Sent)
	for i, t := range e.Terms {
		over[i] = t.Trusts[len(t.Trusts)-1].Until
		for _, ev := range signs {
			if ev.Who == t.Who && ev.Token == t.Token && ev.At >= t.Begin && ends(ev) {
				over[i] = min(over[i], ev.At)
			}
		}
	}
	return over
}

// ends reports whether a term is over when its leader has written an event down.
func ends(ev history.Event) bool {
	if ev.Kind == history.Sent {
		return ev.Op == history.OpDelete || ev.Next != ""
	}
	return forgone(ev.Value)
}

// forgone reports whether a term that is over for a reason was so before its work stopped. If not,
// it may still be lost, which is counted then.
func forgone(reason string) bool {
	return slices.Contains([]string{"expired", "taken", "resigned"}, reason)
}

// life returns when the process that an event is of left or was killed, or when another came in its
// place. That one may be scraped before it stands.
func (e Evidence) life(ev history.Event) time.Duration {
	for _, other := range e.Of(ev.Who, history.Left, history.Killed, history.Ready) {
		if other.At > ev.At {
			return other.At
		}
	}
	return never
}

// uncounted returns a reason of which fewer ends are counted than the process has written down, up
// to and with one; "" if there is none.
func (e Evidence) uncounted(ended history.Event, counted map[string]int) string {
	wrote, all := map[string]int{}, 0
	for _, ev := range e.Of(ended.Who, history.Ready, history.Ended) {
		switch {
		case ev.At > ended.At:
		case ev.Kind == history.Ready:
			clear(wrote)
		default:
			wrote[ev.Value]++
		}
	}
	for reason, n := range wrote {
		if forgone(reason) && counted[reason] < n {
			return reason
		}
		all += n
	}
	for _, n := range counted {
		all -= n
	}
	if all > 0 {
		return "anything"
	}
	return ""
}
