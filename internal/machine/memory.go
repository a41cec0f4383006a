package machine

import (
	"encoding/json"
	"maps"
	"slices"
	"time"
)

const (
	// MaxStrikes is how many terms in a row that ended early are counted.
	MaxStrikes = 7  // from the second on, each doubles the time that a leader waits before it gives way
	maxStruck  = 16 // IDs that are remembered
)

// A Memory is what a candidate remembers between its campaigns: which candidates led and for
// how long, for the sake of flap damping, and how many compete. A candidate that crashes forgets
// how long it led, so the others must remember it.
type Memory struct {
	Looked bool    // it knows who led before, or that nobody did
	Told   bool    // the beginning of the last term was seen:
	Odds   int8    // how unlikely it is that a vacancy that many see is claimed at once: see stage
	Since  Instant // then
	Last   string  // who led last, as JSON
	Token  uint64  // of that
}

// leader returns the last leader that is known.
func (m *Memory) leader() Leader {
	var r Leader
	if m.Last != "" {
		_ = json.Unmarshal([]byte(m.Last), &r) // the method leads wrote it
	}
	return r
}

// leads takes in the present leader.
func (m *Memory) leads(r Leader, now Instant) {
	if r.Token != m.Token || !m.Looked {
		m.Told, m.Since = m.Looked, Instant{}
		if m.Told {
			m.Since = now
		}
	}
	m.Looked, m.Token, m.Last = true, r.Token, textOfJSON(r)
}

// hear takes in the leader that another candidate reports, which may be out of date.
func (m *Memory) hear(r Leader, now Instant) {
	if r.Token > m.Token {
		m.leads(r, now)
	}
}

// strikes returns the strikes that count once the last leader has gone without handing
// over. Its record may have stayed after it, until it expired. If the record went sooner than it
// could expire, its leader had removed it when its work was done, and did not fail.
func (m *Memory) strikes(last Leader, now Instant, stability, ttl, fading time.Duration) map[string]int {
	if !m.Told || now.Since(m.Since) < ttl/2 { // we may have been told late
		return last.Strikes
	}
	lasted := now.Since(m.Since) - fading
	return judge(last.Strikes, last.ID, lasted, stability, lasted < stability)
}

// judge returns the strikes after a term that lasted so long: one more if it failed, none if
// it lasted as long as was asked of it before it began.
func judge(strikes map[string]int, id string, lasted, stability time.Duration, failed bool) map[string]int {
	n := strikes[id]
	switch {
	case lasted >= probation(stability, n):
		n = 0
	case failed:
		n = min(n+1, MaxStrikes)
	}
	others := maps.Clone(strikes)
	delete(others, id)
	if n == 0 {
		return others
	}
	if len(others) >= maxStruck { // forget the candidate with the fewest
		delete(others, slices.MinFunc(slices.Sorted(maps.Keys(others)), func(a, b string) int { return others[a] - others[b] }))
	}
	if others == nil {
		others = map[string]int{}
	}
	others[id] = n
	return others
}

// probation returns how long an heir must stand until a leader gives way to it.
func probation(stability time.Duration, strikes int) time.Duration {
	return stability << min(max(strikes-1, 0), MaxStrikes-1)
}
