package trace

import (
	"fmt"
	"time"

	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
)

// Followed is the rule that the runtime does what the core decides, and tells it of what has
// happened as it was:
//
//   - The core, given the same again, decides the same.
//   - Clocks do not go back from one step to the next.
//   - A request that the core asks for is answered once at most, and by a request that left
//     between the two steps, and no sooner than is said. An answer that says what became of
//     it is that of the store.
//   - The store is asked to write nothing into the leader's safe or the heir's that the core
//     has not asked for, and not twice. An heir is called without the core.
//   - A watch shows only keys that the core wants to see.
//   - Nobody leads under a token that the core has not announced, nor trusts its lease for
//     longer than the core.
//
// Campaigns whose order is a function of the user's are not replayed, but the rest is
// demanded of them too. Candidates of whom no trace was taken are passed over. The history
// must have all requests to the store ([history.Observe]), and those of Options.Hold not.
// Its times are those of the boot clock that candidates read.
func Followed(e oracle.Evidence) oracle.Finding {
	f := oracle.Finding{Promise: "the runtime follows the core", Verdict: oracle.Silent, Detail: "no campaign was traced"}
	j := &judge{candidates: map[string]*candidate{}}
	for _, ev := range e.Whole.Events {
		if err := j.take(ev); err != nil {
			f.Verdict, f.Detail = oracle.Broken, fmt.Sprintf("%s at %.6f s: %v", ev.Who, ev.At.Seconds(), err)
			return f
		}
	}
	if j.steps > 0 {
		f.Verdict, f.Count = oracle.Kept, j.steps
		f.Detail = fmt.Sprintf("%d steps of %d campaigns, %d of which were replayed; %d requests", j.steps, j.campaigns, j.replayed, j.requests)
	}
	return f
}

// A judge knows what the core has decided by now.
type judge struct {
	candidates                           map[string]*candidate // that were traced
	steps, campaigns, replayed, requests int
}

// take takes an event in. The error says what the runtime did wrong.
func (j *judge) take(ev history.Event) error {
	c := j.candidates[ev.Who]
	if c == nil {
		if ev.Kind != history.Begun {
			return nil
		}
		c = &candidate{campaigns: map[string]*campaign{}, trusted: map[uint64]time.Duration{}}
		j.candidates[ev.Who] = c
	}
	switch ev.Kind {
	case history.Begun:
		j.campaigns++
		replayed, err := c.begin(ev)
		if replayed {
			j.replayed++
		}
		return err
	case history.Stepped:
		j.steps++
		return c.step(ev)
	case history.Sent:
		j.requests++
		return c.send(ev)
	case history.Answered:
		c.answer(ev)
	case history.Elected, history.Extended:
		return c.leads(ev)
	}
	return nil
}
