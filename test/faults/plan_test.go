//go:build linux

package faults

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// A step is one fault of a random schedule: it begins at a time and lasts for a
// while.
type step struct {
	at, lasts time.Duration
	act       string
	target    int           // which candidate, or server; leads means whoever leads then
	delay     time.Duration // of what is slow
}

// leads is the target that is whoever leads.
const leads = -1

func (p step) String() string {
	return fmt.Sprintf("%7.3f s  %-14s target %2d  for %.3f s", p.at.Seconds(), p.act, p.target, p.lasts.Seconds())
}

// plan returns the schedule of a stretch: a pure function of the seed and the
// number of the stretch, for a store.
func plan(c column, ttl time.Duration, seed uint64, stretch int) []step {
	chance := rand.New(rand.NewPCG(seed, uint64(stretch)))
	acts := actsOn(c)
	steps := []step{}
	for at := ttl; at < stretchOf(ttl); at += time.Duration(chance.Int64N(int64(ttl))) {
		p := step{
			at:     at,
			act:    acts[chance.IntN(len(acts))],
			target: chance.IntN(2*crew) - crew, // half of all that strikes strikes the leader
			lasts:  ttl/10 + time.Duration(chance.Int64N(int64(5*ttl/2))),
			delay:  time.Duration(chance.Int64N(int64(ttl / 2))),
		}
		p.target = max(p.target, leads)
		steps = append(steps, p)
	}
	return steps
}

// crew is how many candidates there are in a soak.
const crew = 4

// stretchOf is how long a schedule is: long enough for many faults, short enough
// for a history that can be read.
func stretchOf(ttl time.Duration) time.Duration { return min(40*ttl, 90*time.Second) }

// actsOn returns the faults that a store survives without any help. Those that
// come often are there several times.
func actsOn(c column) []string {
	acts := []string{"kill", "kill", "stop", "stop", "stop", "close", "resign", "resign", "lose create", "lose refresh", "lose delete", "erase"}
	if c.nodes > 0 {
		acts = append(acts, "cut", "black hole", "black hole", "cut requests", "cut replies", "slow", "late answers")
	}
	// A failover of Redis loses what its replicas did not have, by its nature.
	if c.nodes > 0 && !slices.Contains([]string{kindSentinel, kindCluster}, c.kind) {
		acts = append(acts, "pause server", "restart server")
	}
	if c.nodes > 2 {
		acts = append(acts, "kill server", "pause server", "restart server")
	}
	// A leader of etcd that is woken may revoke a lease that lives; see row 13f.
	if c.kind == kindEtcd && c.nodes > 1 {
		acts = slices.DeleteFunc(acts, func(act string) bool { return act == "pause server" })
	}
	return acts
}
