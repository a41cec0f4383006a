package lease

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A script drives a world by hand. What it wants delivered that is not there, because
// a rule has prevented it, is left out.
type script struct {
	t *testing.T
	*world
}

const (
	p = 0
	q = 1
	r = 2
)

// asks has candidate's newest request arrive at acceptors, by their letters; answers
// stay on their way.
func (s script) asks(who int, acceptors string) {
	for _, letter := range acceptors {
		to := int(letter - 'A')
		if f, ok := s.newest(len(s.acceptors)+who, to); ok {
			s.request(f)
		}
	}
}

// redirects has the newest request that a candidate has sent to one acceptor arrive at
// another one.
func (s script) redirects(who int, from, to rune) {
	if f, ok := s.newest(len(s.acceptors)+who, int(from-'A')); ok {
		f.to = int(to - 'A')
		s.request(f)
	}
}

func (s script) request(f flight) {
	answer, ok := s.ask(f)
	s.t.Logf("%d: %v → %c: %T %+v; answer %T %+v", s.now, s.candidates[f.from-3].p.Self, 'A'+rune(f.to), f.m, f.m, answer.m, answer.m)
	if ok {
		s.post(answer)
	}
}

// hears has the newest answers of acceptors arrive at a candidate.
func (s script) hears(who int, acceptors string) {
	for _, letter := range acceptors {
		if f, ok := s.newest(int(letter-'A'), len(s.acceptors)+who); ok {
			s.t.Logf("%d: %c → %v: %T %+v", s.now, letter, s.candidates[who].p.Self, f.m, f.m)
			s.tell(f)
		}
	}
}

// newest is the last message that went a way.
func (s script) newest(from, to int) (flight, bool) {
	for _, f := range slices.Backward(s.pool) {
		if f.from == from && f.to == to {
			return f, true
		}
	}
	return flight{}, false
}

// meets is a request that arrives and its answer that does too.
func (s script) meets(who int, acceptors string) {
	s.asks(who, acceptors)
	s.hears(who, acceptors)
}

// does is a whole operation with some acceptors and no delay.
func (s script) does(who int, kind Kind, acceptors string) {
	s.begin(who, kind)
	s.meets(who, acceptors)
	s.meets(who, acceptors)
}

func (s script) at(now time.Duration) { s.tick(now - s.now) }

// A flawed protocol and a schedule that gives it two owners.
type counterexample struct {
	name  string
	flaws flaws
	// kept is the protocol that the same schedule does no harm: without that one flaw.
	kept flaws
	run  func(s script)
}

func TestEachRuleIsNeeded(t *testing.T) {
	for _, c := range counterexamples() {
		t.Run(c.name, func(t *testing.T) {
			for _, v := range []struct {
				name   string
				flaws  flaws
				unsafe bool
			}{{"without the rule", c.flaws, true}, {"with the rule", c.kept, false}, {"with all rules", flaws{}, false}} {
				t.Run(v.name, func(t *testing.T) {
					w := &world{flaws: v.flaws, terms: Terms{Cluster: "c", Members: []MemberID{"A", "B", "C"}, MaxTTL: ttl, Round: round}}
					w.fill(3)
					w.candidates[q].counter, w.candidates[r].counter = 10, 20
					c.run(script{t, w})
					if v.unsafe {
						require.Contains(t, w.trouble, "two owners")
						t.Log(w.trouble)
					} else {
						require.Empty(t, w.trouble)
					}
				})
			}
		})
	}
}

func counterexamples() []counterexample {
	return []counterexample{
		{
			// The schedule of six steps that the text of 2012 allows: an acceptor that
			// was restarted has waited for longer than any lease.
			name:  "the paper of 2012",
			flaws: flaws{lateTimer: true, lateLife: true, overwriteLive: true, unbound: true, quarantine: ttl + 1},
			kept:  flaws{lateLife: true, overwriteLive: true, unbound: true, quarantine: ttl + 1},
			run:   thePaper,
		},
		{
			name:  "late timer",
			flaws: flaws{lateTimer: true},
			run: func(s script) {
				s.begin(p, Create)
				s.asks(p, "AB")
				s.at(ttl - 1)
				s.hears(p, "AB") // promises that are almost as old as a lease
				s.meets(p, "AB")
				s.at(ttl + 1)
				s.does(q, Create, "BC")
			},
		},
		{
			name:  "a live lease is overwritten",
			flaws: flaws{overwriteLive: true, unbound: true},
			kept:  flaws{unbound: true},
			run:   theGhost,
		},
		{
			name:  "an owner is a node",
			flaws: flaws{nodeOwner: true, unbound: true},
			kept:  flaws{unbound: true},
			run:   theGhostOfAnEarlierLife,
		},
		{
			name:  "a stale lease of one's own is open",
			flaws: flaws{staleOwnerOpen: true},
			run:   theForgottenLease,
		},
		{
			name:  "answers are counted, not members",
			flaws: flaws{scalarCounting: true},
			run: func(s script) {
				s.begin(p, Create)
				s.asks(p, "A")
				s.hears(p, "A")
				s.hears(p, "A") // the same promise once more
				s.asks(p, "A")
				s.hears(p, "A")
				s.hears(p, "A")
				s.does(q, Create, "BC")
			},
		},
		{
			name:  "a release matches the owner alone",
			flaws: flaws{looseRelease: true, ownerOnlyRelease: true},
			kept:  flaws{looseRelease: true},
			run:   theLateRelease,
		},
		{
			name:  "a quarantine that is one too short",
			flaws: flaws{quarantine: ttl - 1},
			kept:  flaws{quarantine: ttl},
			run: func(s script) {
				s.does(p, Create, "AB")
				s.restart(0)
				s.at(ttl - 1)
				s.does(q, Create, "AC")
			},
		},
		{
			name:  "acceptors' clocks that run fast",
			flaws: flaws{fastAcceptors: 120},
			run: func(s script) {
				if s.flaws.fastAcceptors == 0 {
					s.flaws.fastAcceptors, s.terms.Drift = 120, 60
					s.acceptors, s.candidates = nil, nil
					s.fill(3) // the same clocks, and terms that allow for them
					s.candidates[q].counter = 10
				}
				s.does(p, Create, "AB")
				s.at(ttl - 1)
				s.does(q, Create, "BC")
			},
		},
	}
}

// thePaper: q's and p's promises are delayed, A is restarted and waits, then both
// propose to all.
func thePaper(s script) {
	s.candidates[q].counter, s.candidates[p].counter = 2, 4
	s.begin(q, Create)
	s.asks(q, "BC")
	s.at(1)
	s.begin(p, Create)
	s.asks(p, "AB")
	s.at(2)
	s.restart(0)
	s.at(2 + ttl + 1)
	s.hears(q, "BC")
	s.redirects(q, 'C', 'A')
	s.asks(q, "BC")
	s.hears(q, "AC")
	s.at(2 + ttl + 2)
	s.hears(p, "AB")
	s.redirects(p, 'B', 'C')
	s.asks(p, "AB")
	s.hears(p, "ABC")
}

// theGhost: q's proposal is on its way for so long that A, which had promised it, was
// restarted meanwhile and has granted p a lease under a lower ballot. It has an empty
// safe's word for it that nobody is there.
func theGhost(s script) {
	s.candidates[q].counter = 4
	s.does(q, Create, "AC") // q leads, …
	s.begin(q, Delete)      // … and stops
	s.asks(q, "AC")
	s.hears(q, "AC")
	s.abandon(q) // the proposals are on their way
	s.restart(0)
	s.at(s.terms.Quarantine())
	s.candidates[p].counter = 2
	s.does(p, Create, "AB")
	s.asks(q, "AC") // only now
	s.does(r, Create, "AC")
	s.wake(r)
	s.meets(r, "AC")
	s.meets(r, "AC")
}

// theGhostOfAnEarlierLife is the same, but both are one member: the lease in the way
// is that of its next incarnation.
func theGhostOfAnEarlierLife(s script) {
	s.candidates[p].counter = 4
	s.does(p, Create, "AC")
	s.begin(p, Delete)
	s.asks(p, "AC")
	s.hears(p, "AC")
	ghosts := []flight{}
	for _, to := range []int{0, 2} {
		if f, ok := s.newest(3+p, to); ok {
			ghosts = append(ghosts, f)
		}
	}
	s.crash(p)
	s.restart(0)
	s.at(s.terms.Quarantine())
	s.candidates[p].counter = 2
	s.does(p, Create, "AB")
	for _, f := range ghosts {
		s.request(f)
	}
	s.does(q, Create, "AC")
	s.wake(q)
	s.meets(q, "AC")
	s.meets(q, "AC")
}

// theForgottenLease: p's lease is live, another candidate of the same member finds it.
func theForgottenLease(s script) {
	s.candidates = append(s.candidates, s.candidates[p])
	other := len(s.candidates) - 1
	s.candidates[other].number = 100
	s.candidates[other].counter = 100
	s.does(p, Create, "AB")
	s.does(other, Create, "BC")
}

// theLateRelease: p releases, leads again, and then its first release arrives once
// more.
func theLateRelease(s script) {
	s.does(p, Create, "ABC")
	s.begin(p, Delete)
	s.meets(p, "AC")
	var late []flight
	for _, to := range []int{0, 2} {
		if f, ok := s.newest(3+p, to); ok {
			late = append(late, f)
		}
	}
	s.meets(p, "AC")
	s.does(p, Create, "AC")
	require.True(s.t, s.owns(s.candidates[p]), "p leads again")
	for _, f := range late {
		_, isRelease := f.m.(Propose)
		require.True(s.t, isRelease, "%T", f.m)
		s.request(f)
	}
	s.does(q, Create, "AC")
}
