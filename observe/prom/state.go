package electionprom

import (
	"time"

	"github.com/electkv/election"
)

// A state is what the elections of a series are at one moment.
type state struct {
	label     string
	alone     bool // it is of one election, and has its name
	elections int
	leaders   int
	roles     map[election.Role]int
	token     uint64        // the largest
	trust     time.Duration // the shortest of those that lead; zero if there is none
	ttl       time.Duration // the shortest
	contact   time.Time     // the newest
}

// now returns the state of each series.
func (k *known) now() []state {
	k.mu.Lock()
	defer k.mu.Unlock()
	states := make([]state, 0, len(k.series))
	for _, s := range k.series {
		states = append(states, s.now())
	}
	return states
}

func (s *series) now() state {
	now := state{label: s.label, alone: true, elections: len(s.elections), roles: map[election.Role]int{
		election.RoleIdle: 0, election.RoleCandidate: 0, election.RoleHeir: 0, election.RoleLeader: 0,
	}}
	for e := range s.elections {
		now.alone = now.alone && e.name == s.label
		if now.ttl == 0 || e.ttl < now.ttl {
			now.ttl = e.ttl
		}
		now.add(election.Status{Contact: e.contact})
		e.ask(&now)
	}
	return now
}

// ask adds what the candidates of an election are.
func (e *contest) ask(now *state) {
	if len(e.campaigns) == 0 {
		now.roles[election.RoleIdle]++
		return
	}
	asked := make(map[*election.Candidate]struct{}) // one may have several campaigns
	for _, c := range e.campaigns {
		if _, ok := asked[c]; ok {
			continue
		}
		if len(e.campaigns) > 1 {
			asked[c] = struct{}{}
		}
		status := c.Status()
		now.roles[status.Role]++
		now.add(status)
	}
}

// add takes in what a candidate is.
func (s *state) add(c election.Status) {
	if c.Contact.After(s.contact) {
		s.contact = c.Contact
	}
	if c.Role != election.RoleLeader {
		return
	}
	s.leaders++
	s.token = max(s.token, c.Token)
	if s.trust == 0 || c.Remaining < s.trust {
		s.trust = c.Remaining
	}
}
