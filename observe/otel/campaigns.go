package electionotel

import (
	"context"
	"runtime"
	"weak"

	"go.opentelemetry.io/otel/trace"

	"github.com/electkv/election"
)

// campaigns are those of a candidate that are not over, by their numbers.
type campaigns map[uint64]*campaign

// A campaign is what is kept of one, until it has won nothing or nothing is left of its term.
type campaign struct {
	caller   trace.SpanContext // of the call that campaigns
	origin   trace.SpanContext // of the campaign
	span     trace.Span        // of the campaign or of the release, while that is under way
	doubtful bool              // calls of hooks were dropped since, and with them maybe its end
}

// keep notes that a candidate campaigns.
func (t *Telemetry) keep(i election.HookInfo, c *campaign) {
	for _, lost := range t.replace(i, c) {
		lost.end()
	}
}

// replace notes a campaign, and forgets the candidate's doubtful ones. What is kept of the
// candidate ends with the candidate itself.
func (t *Telemetry) replace(i election.HookInfo, c *campaign) (lost []*campaign) {
	key := weak.Make(i.Candidate)
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.candidates[key]
	if all == nil {
		all = make(campaigns)
		t.candidates[key] = all
		runtime.AddCleanup(i.Candidate, t.forget, key)
	}
	for number, old := range all {
		if old.doubtful {
			delete(all, number)
			lost = append(lost, old)
		}
	}
	all[i.Campaign] = c
	return lost
}

// end ends the span that is under way, if there is one, without what would have been told.
func (c *campaign) end() {
	if c.span != nil {
		c.span.End()
	}
}

// forget forgets a candidate.
func (t *Telemetry) forget(key weak.Pointer[election.Candidate]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.candidates, key)
}

// known returns the candidates that have campaigned and still exist.
func (t *Telemetry) known() (all []*election.Candidate) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for key := range t.candidates {
		if c := key.Value(); c != nil {
			all = append(all, c)
		}
	}
	return all
}

// campaign returns what is kept of a campaign; nil if nothing is.
func (t *Telemetry) campaign(i election.HookInfo) *campaign {
	key := weak.Make(i.Candidate)
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.candidates[key][i.Campaign]
}

// over forgets a campaign.
func (t *Telemetry) over(i election.HookInfo) {
	key := weak.Make(i.Candidate)
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.candidates[key], i.Campaign)
}

// dropped counts that calls of hooks were dropped. A campaign that began before may be over
// without our knowledge: it is forgotten when its candidate campaigns again.
func (t *Telemetry) dropped(ctx context.Context, i election.DroppedInfo) {
	t.counts.dropped.Add(ctx, int64(i.Calls))
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, all := range t.candidates {
		for _, c := range all {
			c.doubtful = true
		}
	}
}
