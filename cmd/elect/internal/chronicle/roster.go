package chronicle

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/electkv/election"
	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/kv"
)

const (
	// rosterPace is the least time between two reads of rosters, whichever elections' they are.
	rosterPace = 200 * time.Millisecond

	// After a read, an election's roster is left alone for rosterPause, or for rosterRest times as
	// long as the read took. After trouble it is twice as long each time, up to mostRosterPause.
	rosterPause     = 2 * time.Second
	rosterRest      = 5
	mostRosterPause = time.Minute

	// rosterTime is how long a read may take. Slow ones hold up no others.
	rosterTime = 5 * time.Second
)

// A reading is how the reads of one election's roster go.
type reading struct {
	due   time.Duration // when it may be read again
	goes  bool
	pause time.Duration // after trouble
}

// ReadRosters reads the rosters of all elections in turn, until the chronicle is closed: one that
// is looked at before all others. It does nothing if the store keeps no rosters.
func (c *Chronicle) ReadRosters() {
	if _, ok := c.store.(kv.Roster); !ok {
		return
	}
	c.work.Go(func() {
		for sleep(c.ctx, rosterPace) {
			if f := c.nextRoster(boottime.Now()); f != nil {
				c.work.Go(func() { c.readRoster(f) })
			}
		}
	})
}

// Look says which election somebody looks at, empty if none.
func (c *Chronicle) Look(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.looked = name
}

// nextRoster returns the election whose roster is to be read, if any: of those that are due the one
// that is looked at, or the one that has waited longest.
func (c *Chronicle) nextRoster(now time.Duration) *followed {
	c.mu.Lock()
	defer c.mu.Unlock()
	var next *followed
	for _, f := range c.elections {
		switch {
		case f.roster.goes, f.roster.due > now:
		case next == nil, f.Name == c.looked, next.Name != c.looked && f.roster.due < next.roster.due:
			next = f
		}
	}
	if next != nil {
		next.roster.goes = true
	}
	return next
}

func (c *Chronicle) readRoster(f *followed) {
	ctx, cancel := context.WithTimeoutCause(c.ctx, rosterTime, fmt.Errorf("no answer within %v", rosterTime))
	defer cancel()
	asked := boottime.Now()
	all, err := election.Members(ctx, c.store, f.Name)
	if c.ctx.Err() != nil {
		return
	}
	why := ""
	if err != nil && !errors.Is(err, kv.ErrInvalid) { // what has no place for a roster has no candidates in it
		why = err.Error()
	}
	c.update(f.Name, func(e *Election) bool { return e.setCandidates(candidatesOf(all), why) })
	c.mu.Lock()
	defer c.mu.Unlock()
	f.roster.rest(boottime.Now(), boottime.Now()-asked, err)
}

// rest says when a roster may be read again, after a read that took so long.
func (r *reading) rest(now, took time.Duration, err error) {
	r.goes = false
	r.due = now + max(rosterPause, rosterRest*took)
	switch {
	case err == nil:
		r.pause = 0
	case errors.Is(err, kv.ErrInvalid):
		r.due = math.MaxInt64 // never
	default:
		r.pause = min(max(2*r.pause, rosterPause), mostRosterPause)
		r.due = now + r.pause
	}
}

// candidatesOf returns what a roster tells, and nothing if no candidate keeps a record in it: then
// it has only the leader and the heir, whose safes are watched.
func candidatesOf(all []election.Member) []Candidate {
	if !slices.ContainsFunc(all, func(m election.Member) bool { return m.Safe != "" }) {
		return nil
	}
	candidates := make([]Candidate, 0, len(all))
	for _, m := range all {
		c := Candidate{ID: beginning(m.ID), Rank: m.Rank, Value: cut(m.Value, mostValue), Since: m.Since, Foreign: m.Foreign}
		if m.Role == election.RoleObserver {
			c.State = "observes"
		}
		if _, key, ok := kv.MemberOf(m.Safe); ok && !m.Foreign {
			tag, _, _ := strings.Cut(key, "-")
			c.signs = m.ID + "/" + tag + "-"
		}
		candidates = append(candidates, c)
	}
	return candidates
}
