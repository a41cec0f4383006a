package machine_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/electkv/election/internal/machine"
	"github.com/electkv/election/internal/mistake"
)

// Each of these has been somebody's bug, or would be an easy one to make.
var planted = map[string]bug{
	"trust is counted from the answer": {event: func(now time.Duration, _ machine.Request, e *machine.Event) {
		if e.Kind == machine.Answered {
			e.Answer.Sent = at(now)
		}
	}},
	"a lease is trusted for longer than its TTL": {state: func(_ time.Duration, after *machine.Campaign, effects *[]machine.Effect) {
		for i := range *effects {
			(*effects)[i].Trust.Span += 2
		}
		if after.Lead.Phase == machine.Owner {
			after.Lead.Trust.Span = timing.TTL + 2
		}
	}},
	"a create without a clear answer is taken for refused": {event: func(_ time.Duration, asked machine.Request, e *machine.Event) {
		if e.Kind == machine.Answered && e.Answer.Verdict == machine.Unclear && asked.Op == machine.Create {
			e.Answer.Verdict = machine.Held
		}
	}},
	"a create without a clear answer is taken for granted": {event: func(_ time.Duration, asked machine.Request, e *machine.Event) {
		if e.Kind == machine.Answered && e.Answer.Key == machine.Lead && e.Answer.Verdict == machine.Unclear && asked.Op == machine.Create {
			e.Answer.Verdict, e.Answer.Record = machine.OK, asked.New
		}
	}},
	"a refresh without a clear answer extends the trust": {event: func(_ time.Duration, asked machine.Request, e *machine.Event) {
		if e.Kind == machine.Answered && e.Answer.Key == machine.Lead && e.Answer.Verdict == machine.Unclear && asked.Op == machine.Refresh {
			e.Answer.Verdict, e.Answer.Record = machine.OK, asked.Old
		}
	}},
	"an heir leads by what was handed over without a look": {state: func(now time.Duration, after *machine.Campaign, effects *[]machine.Effect) {
		if after.Stage == machine.Standing && after.Lead.Remains.Kind == machine.Handed && after.Lead.Phase == machine.Waiting {
			after.Stage, after.Lead.Phase = machine.Leading, machine.Owner
			after.Lead.Signature = after.Place.Signature
			after.Lead.Trust = machine.Trust{Sent: at(now), Span: timing.TTL}
			*effects = append(*effects, machine.Effect{Kind: machine.Elected, Trust: after.Lead.Trust})
		}
	}},
	"a late copy is carried out without its condition": {carry: func(s *store, r *machine.Request, now time.Duration) {
		if rec, ok := s.live(r.Key, now); ok && r.Op == machine.Create && rec.Signature != r.New.Signature {
			s.rec[r.Key] = rec
			r.Op, r.Old = machine.Displace, rec
		}
	}},
	"a leader that resigns deletes whatever is there": {carry: func(s *store, r *machine.Request, now time.Duration) {
		if rec, ok := s.live(r.Key, now); ok && r.Op == machine.Delete {
			r.Old = rec
		}
	}},
}

func TestEachPlantedBugIsFound(t *testing.T) {
	for what, b := range planted {
		t.Run(what, func(t *testing.T) {
			for seed := range uint64(20_000) {
				rng := rand.New(rand.NewPCG(seed, 1))
				w := newWorld(seed%2 == 0, 3, 8, order(seed))
				if seed%3 == 0 { // one leads, and another is heir
					w = newWorld(seed%2 == 0, 3, 8, nil)
					w.play("0: create leader", "1: create leader", "1: create heir")
				}
				w.runs, w.stats = 20, &stats{bug: b}
				if wrong, path := walk(w, 200, rng); wrong != "" {
					t.Logf("seed %d: %s\n%s", seed, wrong, last(path, 6))
					return
				}
			}
			mistake.Missed(t, "in 20,000 walks")
		})
	}
}

// last returns the last lines of a text.
func last(text string, n int) string {
	lines := strings.Split(text, "\n")
	return strings.Join(lines[max(len(lines)-n, 0):], "\n")
}
