package invitation

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// A Config is what a process is told once.
type Config struct {
	Self   ID
	Timing Timing
}

// Check says what is wrong with the config.
func (c Config) Check() error {
	if c.Self == "" || len(c.Self) > MaxID {
		return fmt.Errorf("an ID of %d bytes: want 1 to %d", len(c.Self), MaxID)
	}
	return c.Timing.Check()
}

// CheckPeers says what is wrong with a list of processes, in any order and with or without
// the process itself.
func (c Config) CheckPeers(peers []ID) error {
	all := sorted(append(slices.Clone(peers), c.Self))
	if len(all) < 2 && len(peers) > 1 {
		return errors.New("the same process is listed again and again")
	}
	return checkIDs(all)
}

// A Node is the state of one process. It is a value: [Step] returns another one and leaves
// its argument as it was.
type Node struct {
	cfg         Config
	stage       stage
	peers       []ID // sorted, without itself
	incarnation uint64
	counter     uint64 // of the last number that it has made
	seed        uint64

	group   Group         // that it is in, zero if in none
	entered bool          // the work for it was begun
	begin   time.Duration // when that is done for a group of one
	work    Number        // of the group whose work has not returned
	bound   Number        // of the group for which it has left its own
	beat    time.Duration // when the next heartbeat is due, or missed
	missed  int           // heartbeats of the leader that were missed in a row

	// As leader.
	voices []voice
	round  round
	next   time.Duration // when to look
	rests  time.Duration // until when probes do not make it look
	held   time.Duration // until when it waits for the leader whose invitation it has accepted
	holder Number        // to what that was
	tries  []try
}

type stage uint8

const (
	fresh stage = iota
	running
	quit
)

// A voice is what a leader knows of another member.
type voice struct {
	id        ID
	confirmed bool // it has entered the group
	missed    int  // heartbeats without an answer in a row
	lost      bool
}

// A round is what a leader does to change its group.
type round struct {
	phase  phase
	number Number // of the group that it wants to form
	began  time.Duration
	until  time.Duration
	again  bool // who was named as a leader, and is silent, was probed again
	found  []Group
	asked  []asked
}

type phase uint8

const (
	idle     phase = iota
	looking        // probes are out
	inviting       // invitations are out
	joining        // members are told to leave their groups; its own it has left
)

// asked is a process that a round waits for.
type asked struct {
	id       ID
	old      Number // of the group that it is to leave
	answered bool
	names    ID // the leader that it named
}

// A try is what a leader remembers of its attempts to merge with another.
type try struct {
	peer  ID
	tries int
	last  time.Duration
}

// New returns the state of a process before its [Start].
func New(cfg Config) Node { return Node{cfg: cfg} }

// Group returns the group that the process is in and was told of, if there is one.
func (n *Node) Group() (g Group, ok bool) {
	if !n.entered {
		return Group{}, false
	}
	return n.group, true
}

// Done reports whether the process has quit, and its work has returned.
func (n *Node) Done() bool { return n.stage == quit && n.work.IsZero() }

// never is an instant that does not come.
const never = time.Duration(math.MaxInt64)

// Due returns when the process wants its next [Tick]: never if that is the largest duration.
func (n *Node) Due() time.Duration {
	due := never
	if n.stage != running {
		return due
	}
	if n.beats() {
		due = n.beat
	}
	if n.round.phase != idle {
		due = min(due, n.round.until)
	}
	if n.round.phase == looking && !n.round.again {
		due = min(due, n.halfway())
	}
	if n.leads() {
		if !n.entered {
			due = min(due, n.begin)
		}
		if n.mayLook() {
			due = min(due, max(n.next, n.held))
		}
	}
	return due
}

// leads reports whether it is in a group that it leads.
func (n *Node) leads() bool { return n.group.Leader() == n.cfg.Self && n.cfg.Self != "" }

// inGroup reports whether it is in the group with that number.
func (n *Node) inGroup(number Number) bool { return !number.IsZero() && n.group.Number == number }

// awaits reports whether it has left its group for that one.
func (n *Node) awaits(number Number) bool { return !number.IsZero() && n.bound == number }

// beats reports whether heartbeats are sent, or expected.
func (n *Node) beats() bool {
	switch {
	case !n.bound.IsZero():
		return true
	case n.leads():
		return slices.ContainsFunc(n.voices, func(v voice) bool { return !v.lost })
	}
	return !n.group.Number.IsZero()
}

// voice returns what it knows of a member of the group that it leads, nil if nothing.
func (n *Node) voice(id ID) *voice {
	i := slices.IndexFunc(n.voices, func(v voice) bool { return v.id == id })
	if i < 0 || !n.leads() {
		return nil
	}
	return &n.voices[i]
}

// alive returns the other members of its group that are not lost.
func (n *Node) alive() []ID {
	var all []ID
	for _, v := range n.voices {
		if !v.lost {
			all = append(all, v.id)
		}
	}
	return all
}

// lost reports whether a member of its group is lost.
func (n *Node) lost() bool {
	return slices.ContainsFunc(n.voices, func(v voice) bool { return v.lost })
}

// asked returns what a round has asked of a process, nil if nothing.
func (r *round) of(id ID) *asked {
	i := slices.IndexFunc(r.asked, func(a asked) bool { return a.id == id })
	if i < 0 {
		return nil
	}
	return &r.asked[i]
}

// complete reports whether all that were asked have answered.
func (r *round) complete() bool {
	return !slices.ContainsFunc(r.asked, func(a asked) bool { return !a.answered })
}

// clone returns a node that shares nothing that is written to.
func clone(n Node) Node {
	n.voices = slices.Clone(n.voices)
	n.tries = slices.Clone(n.tries)
	n.round.found = slices.Clone(n.round.found)
	n.round.asked = slices.Clone(n.round.asked)
	return n
}
