//go:build linux

package faults

import (
	"fmt"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/testenv"
)

// kill ends a candidate's process by SIGKILL.
func (s *stage) kill(who string) {
	s.t.Helper()
	a := s.actor(who)
	a.doom = "signal: killed"
	s.noteAll(a, history.Event{Kind: history.Killed})
	a.Signal(syscall.SIGKILL)
}

// exit lets a candidate's process end by os.Exit.
func (s *stage) exit(who string) {
	s.t.Helper()
	a := s.actor(who)
	a.doom = fmt.Sprintf("exit status %d", onOrder)
	s.noteAll(a, history.Event{Kind: history.Killed, Text: "by os.Exit"})
	require.NoError(s.t, a.Order("exit"))
}

// panic lets a leader's work panic, which ends its process.
func (s *stage) panic(who string) {
	s.t.Helper()
	a := s.actor(who)
	a.doom, a.lastWords = "exit status 2", "panic: told to panic"
	s.fault("the work of " + who + " panics")
	require.NoError(s.t, a.Order("panic"))
}

// stop puts a candidate's process to sleep, by SIGSTOP, and waits until it is. In SQLite, one
// that sleeps within a write of its own holds up all others, as sqlkv's documentation says, so
// nobody writes meanwhile.
func (s *stage) stop(who string) {
	s.t.Helper()
	if s.col.kind == kindSQLite {
		defer s.keepFromWriting()()
	}
	a := s.actor(who)
	s.noteAll(a, history.Event{Kind: history.Stopped})
	a.Signal(syscall.SIGSTOP)
	require.NoError(s.t, a.awaitStop())
}

// asleep waits until a process has put itself to sleep, as told by a freeze.
func (s *stage) asleep(who string) history.Event {
	s.t.Helper()
	e := s.awaitOf(who, history.Stopped)
	require.NoError(s.t, s.actor(who).awaitStop())
	return e
}

// wake wakes it, by SIGCONT.
func (s *stage) wake(who string) {
	s.t.Helper()
	a := s.actor(who)
	s.noteAll(a, history.Event{Kind: history.Woken})
	a.Signal(syscall.SIGCONT)
}

// tell gives a candidate's process an order; see [process.obey].
func (s *stage) tell(who, order string) {
	s.t.Helper()
	require.NoError(s.t, s.actor(who).Order(order))
}

func (s *stage) noteAll(a *actor, e history.Event) {
	for _, who := range a.part.Who {
		e.Who = who
		s.note(e)
	}
}

// links spoils the links of some candidates, or of all if none is named, and
// notes that as text.
func (s *stage) links(text string, spoil func(*testenv.Proxy), who ...string) {
	s.t.Helper()
	if len(who) == 0 {
		who = s.names
	}
	for _, name := range who {
		s.note(history.Event{Kind: history.Fault, Who: name, Text: text})
		for _, link := range s.actor(name).links {
			spoil(link)
		}
	}
}

// cut closes all connections of candidates, and refuses new ones.
func (s *stage) cut(who ...string) { s.links("is cut off", (*testenv.Proxy).Cut, who...) }

// blackHole swallows everything, both ways, without an error.
func (s *stage) blackHole(who ...string) {
	s.links("is in a black hole", (*testenv.Proxy).BlackHole, who...)
}

// cutRequests swallows what candidates send.
func (s *stage) cutRequests(who ...string) {
	s.links("is not heard", (*testenv.Proxy).DropRequests, who...)
}

// cutReplies swallows what is sent to candidates.
func (s *stage) cutReplies(who ...string) {
	s.links("hears nothing", (*testenv.Proxy).DropReplies, who...)
}

// slow lets everything take d in each direction.
func (s *stage) slow(d time.Duration, who ...string) {
	s.links("is "+d.String()+" away", func(p *testenv.Proxy) { p.Delay(d) }, who...)
}

// heal puts the links of some candidates, or of all, right again.
func (s *stage) heal(who ...string) {
	s.t.Helper()
	if len(who) == 0 {
		who = s.names
	}
	for _, name := range who {
		s.note(history.Event{Kind: history.Healed, Who: name, Text: "is connected again"})
		for _, link := range s.actor(name).links {
			link.Heal()
		}
	}
}

// fault notes that something begins to go wrong.
func (s *stage) fault(text string) { s.note(history.Event{Kind: history.Fault, Text: text}) }

// healed notes that it is put right again.
func (s *stage) healed(text string) { s.note(history.Event{Kind: history.Healed, Text: text}) }

// interfered notes that an operator is about to touch the record: until within
// later, two may lead.
func (s *stage) interfered(within time.Duration, text string) {
	s.note(history.Event{Kind: history.Interfered, Within: within, Text: text})
}

// due notes that from now on somebody other than who, if given, is to lead
// within a time.
func (s *stage) due(who string, within time.Duration, after string) {
	s.note(history.Event{Kind: history.Due, Who: who, Within: within, Text: after})
}

// keep notes that a term is to go on for at least so long.
func (s *stage) keep(term history.Stretch, within time.Duration) {
	s.note(history.Event{Kind: history.Keep, Who: term.Who, Token: term.Token, Within: within})
}
