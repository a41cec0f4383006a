package invitation

import (
	"fmt"
	"time"
)

// A Timing holds the durations of a process. All processes should have the same; nothing that
// is promised of groups depends on it.
type Timing struct {
	// Heartbeat is how often a leader sends its members a heartbeat.
	Heartbeat time.Duration
	// Misses is how many heartbeats in a row are missed, or go without an answer, when a
	// leader or a member is taken for lost.
	Misses int
	// Round is how long a leader waits for answers to probes and invitations.
	Round time.Duration
	// Look is the least time between two looks for processes outside the group; half of it
	// more at most. A group of several that was just formed reacts to no probe for so long.
	Look time.Duration
	// Drain is how long members' work may take to stop before they are left out.
	Drain time.Duration
}

// Check says what is wrong with the durations.
func (t Timing) Check() error {
	for _, d := range []struct {
		name string
		d    time.Duration
	}{{"Heartbeat", t.Heartbeat}, {"Round", t.Round}, {"Look", t.Look}, {"Drain", t.Drain}} {
		if d.d <= 0 || d.d > 24*time.Hour {
			return fmt.Errorf("%s %v: want more than 0 and at most 24h", d.name, d.d)
		}
	}
	if t.Misses < 1 {
		return fmt.Errorf("%d misses: want at least 1", t.Misses)
	}
	return nil
}

// Silence is the longest time for which a leader or a member that is lost is not missed.
func (t Timing) Silence() time.Duration { return time.Duration(t.Misses+1) * t.Heartbeat }

// patience is how long a group of one looks for others before its work begins: a look and
// an invitation by itself, or by another that has to hear of it first.
func (t Timing) patience() time.Duration { return 4 * t.Round }

// hold is how long the leader that has accepted an invitation makes none by itself. The
// leader that invites decides within a round.
func (t Timing) hold() time.Duration { return 2 * t.Round }

// wait is how long after so many attempts to merge with a leader the next one is made.
func (t Timing) wait(tries int) time.Duration {
	return t.Look << min(max(tries-1, 0), mostDoublings)
}

// mostDoublings is how often the time between attempts is doubled.
const mostDoublings = 3

// forget is how long after the last attempt it is forgotten that there were any.
func (t Timing) forget() time.Duration { return 2 * t.wait(mostDoublings+1) }

// Merged is the longest time in which all groups of a network that is whole and quiet have
// become one, if no work takes longer than Drain to stop. What was lost is missed, a merge
// that was begun is given up, the longest wait for another attempt passes, and the
// two looks of the leader that leads at the end find all others.
func (t Timing) Merged() time.Duration {
	return 2*t.Silence() + 2*t.Drain + t.wait(mostDoublings+1) + 2*(t.Look+t.Look/2) + 4*t.Round
}

// TimingOf returns durations that fit to those that a user chooses.
func TimingOf(heartbeat, drain time.Duration) Timing {
	return Timing{Heartbeat: heartbeat, Misses: 3, Round: heartbeat / 2, Look: 5 * heartbeat, Drain: drain}
}

// DefaultTiming returns durations for a local network.
func DefaultTiming() Timing { return TimingOf(time.Second, 10*time.Second) }
