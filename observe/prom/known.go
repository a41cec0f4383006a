package electionprom

import (
	"strings"
	"sync"
	"time"

	"github.com/electkv/election"
)

// known are the elections of which hooks were told.
type known struct {
	group func(name string) string

	mu        sync.Mutex
	elections map[string]*contest // by name
	series    map[string]*series  // by label
}

// A series is a value of the label "election", with all elections that have it.
type series struct {
	label     string
	elections map[*contest]struct{}
}

// A contest is an election as this process takes part in it.
type contest struct {
	name   string
	series *series
	ttl    time.Duration

	// The candidates with a campaign or a term, by the campaign's number. One that has neither
	// is idle, and need not be kept for that.
	campaigns map[uint64]*election.Candidate
	contact   time.Time // the newest of candidates that were here
}

// of returns the election of a candidate, and whether its series is a new one.
func (k *known) of(c *election.Candidate) (e *contest, first bool) {
	e, ok := k.elections[c.Name()]
	if ok {
		return e, false
	}
	label := strings.ToValidUTF8(k.group(c.Name()), "\uFFFD") // others are refused
	s, ok := k.series[label]
	if !ok {
		s = &series{label, make(map[*contest]struct{})}
		k.series[label] = s
	}
	e = &contest{name: c.Name(), series: s, ttl: c.TTL(), campaigns: make(map[uint64]*election.Candidate)}
	s.elections[e] = struct{}{}
	k.elections[e.name] = e
	return e, !ok
}

// label returns the value of the label "election" for a candidate, and whether it is new.
func (k *known) label(c *election.Candidate) (label string, first bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	e, first := k.of(c)
	return e.series.label, first
}

// enter notes that a candidate campaigns or leads.
func (k *known) enter(i election.HookInfo) {
	k.mu.Lock()
	defer k.mu.Unlock()
	e, _ := k.of(i.Candidate)
	e.campaigns[i.Campaign] = i.Candidate
	e.ttl = i.Candidate.TTL()
}

// leave notes that it does so no longer.
func (k *known) leave(i election.HookInfo) {
	k.mu.Lock()
	defer k.mu.Unlock()
	e, _ := k.of(i.Candidate)
	delete(e.campaigns, i.Campaign)
	e.heard(i.Candidate.Status().Contact)
}

// sweep leaves out the candidates that neither campaign nor lead: calls of hooks were dropped, and
// maybe those that would have said so.
func (k *known) sweep() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, e := range k.elections {
		for number, c := range e.campaigns {
			if status := c.Status(); status.Role == election.RoleIdle {
				delete(e.campaigns, number)
				e.heard(status.Contact)
			}
		}
	}
}

// forget drops an election. It returns the series that has no more of them.
func (k *known) forget(name string) *series {
	k.mu.Lock()
	defer k.mu.Unlock()
	e, ok := k.elections[name]
	if !ok {
		return nil
	}
	delete(k.elections, name)
	delete(e.series.elections, e)
	if len(e.series.elections) > 0 {
		return nil
	}
	delete(k.series, e.series.label)
	return e.series
}

// heard notes that the store was heard at a time.
func (e *contest) heard(at time.Time) {
	if at.After(e.contact) {
		e.contact = at
	}
}
