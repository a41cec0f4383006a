package election

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/electkv/election/kv"
)

const (
	maxStrikes = 7  // from the second on, each doubles the time that a leader waits before it gives way
	maxStruck  = 16 // IDs that are remembered
)

// A reign is a leader's term, as others tell of it.
type reign struct {
	ID      string         `json:"id"`
	Token   uint64         `json:"token"`
	Rank    int            `json:"rank,omitempty"`
	Heirs   []string       `json:"heirs,omitempty"`
	Strikes map[string]int `json:"strikes,omitempty"` // terms in a row that ended early, by ID
}

// reignOf returns the reign of a leader's record.
func reignOf(rec kv.Record) reign {
	n := noteOf(rec)
	return reign{ID: idOf(rec.Signature), Token: rec.Token, Rank: n.Rank, Heirs: n.Heirs, Strikes: n.Strikes}
}

func (r reign) contender() Contender {
	return Contender{ID: r.ID, Rank: r.Rank, Heirs: r.Heirs}
}

// A chronicle is what a candidate remembers of those who led. It serves the damping
// of leaders whose terms keep ending early: a candidate that crashes forgets itself
// how long it led, so that those who come after it must know.
type chronicle struct {
	mu     sync.Mutex
	looked bool // it was told who led before, or that nobody did
	last   reign
	since  time.Time // when that term was first told of; zero if it may be older
}

// vacant takes in that nobody leads.
func (h *chronicle) vacant() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.looked = true
}

// leads takes in who leads.
func (h *chronicle) leads(r reign) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if r.Token != h.last.Token {
		h.since = time.Time{}
		if h.looked {
			h.since = time.Now()
		}
	}
	h.looked, h.last = true, r
}

// hear takes in who leads, as somebody else tells it, who may not know yet who leads
// by now.
func (h *chronicle) hear(r reign) {
	if r.Token > h.latest().Token {
		h.leads(r)
	}
}

// latest returns who is known to have led last.
func (h *chronicle) latest() reign {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last
}

// strikes returns the strikes that count once the last leader has gone without
// handing over. Its record may have outlived it by fading. One that went sooner than it
// could fade was removed by its leader, whose work was done: that has not failed.
func (h *chronicle) strikes(stability, ttl, fading time.Duration) map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.since.IsZero() || time.Since(h.since) < ttl/2 { // we may have been told late
		return h.last.Strikes
	}
	lasted := time.Since(h.since) - fading
	return judge(h.last.Strikes, h.last.ID, lasted, stability, lasted < stability)
}

// judge returns the strikes after a term that lasted so long: one more if it
// failed, none if it lasted as long as was asked of it before it began.
func judge(strikes map[string]int, id string, lasted, stability time.Duration, failed bool) map[string]int {
	n := strikes[id]
	switch {
	case lasted >= probation(stability, n):
		n = 0
	case failed:
		n = min(n+1, maxStrikes)
	}
	others := maps.Clone(strikes)
	delete(others, id)
	if n == 0 {
		return others
	}
	if len(others) >= maxStruck { // forget who has the fewest
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
	return stability << min(max(strikes-1, 0), maxStrikes-1)
}
