// Package planted has bugs, and sees that they are found: engines, adapters, clocks
// and worlds with one mistake each, on which the rules of package oracle must find
// it, in the schedules in which the real engine keeps every promise. A rule that finds
// no bug proves nothing where it finds nothing.
//
// The mistakes that others made are in package mistake, for tests on real servers
// too. What is planted here needs a simulated world, or fake time.
package planted

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/electkv/election/internal/mistake"
	"github.com/electkv/election/internal/oracle"
	"github.com/electkv/election/internal/seam"
	"github.com/electkv/election/internal/sim"
	"github.com/electkv/election/internal/simulation"
)

// A bug is a world with an engine that has it, and the rule that must find it there.
type bug struct {
	name    string
	rule    oracle.Rule
	own     simulation.Rule // in place of rule, if it needs to know the schedule
	engine  simulation.Engine
	healthy simulation.Engine   // the same without the bug; nil for the real engine
	world   func(*sim.Schedule) // what the bug needs of the world; may be nil
	crack   func(*sim.Schedule) // the bug, if it is in the world; may be nil
}

// mostSchedules is how many schedules may be tried until a bug is found.
const mostSchedules = 300

// A hunter hunts bugs on the engine.
type hunter struct {
	engine   seam.Engine
	survived map[string]bool // the schedules in which the real engine kept every promise
}

// A catch is the record of one planted bug.
type catch struct {
	Bug       string `json:"bug"`
	Rule      string `json:"rule"`
	Caught    bool   `json:"caught"`
	Schedules int    `json:"schedules"` // that it took
	Detail    string `json:"detail"`    // what the rule says of the last
}

// CatchEach has each bug found by its rule, in the schedules that the real engine
// survives with every promise kept.
func CatchEach(t *testing.T, engine seam.Engine) {
	h := hunter{engine, map[string]bool{}}
	catches := []catch{}
	for _, b := range bugs {
		t.Run(b.name+" "+b.finder(), func(t *testing.T) {
			c := h.hunt(t, b)
			catches = append(catches, c)
			if !c.Caught {
				mistake.Missed(t, fmt.Sprintf("%s finds nothing in %d schedules", c.Rule, c.Schedules))
			}
			t.Logf("caught in schedule %d: %s", c.Schedules, c.Detail)
		})
	}
	simulation.Results(t, "planted.json", catches)
}

// hunt runs schedules with and without the bug until it is found.
func (h hunter) hunt(t *testing.T, b bug) catch {
	c := catch{Bug: b.name, Rule: b.finder()}
	healthy := b.healthy
	if healthy == nil {
		healthy = simulation.Real
	}
	draw := rapid.Custom(simulation.DrawStored)
	for c.Schedules < mostSchedules && !c.Caught {
		c.Schedules++
		s := draw.Example(c.Schedules)
		if b.world != nil {
			b.world(&s)
		}
		rule := b.rule
		if b.own != nil {
			rule = b.own(s)
		}
		if b.healthy != nil || b.own != nil || !h.survived[s.String()] { // the same schedules are drawn for many a bug
			well := simulation.Record(t, h.engine, uint64(c.Schedules), s, healthy)
			require.Emptyf(t, oracle.Judge(well, append(oracle.All(), rule)...).Broken(), "without the bug, on %s", s.String())
			h.survived[s.String()] = h.survived[s.String()] || b.healthy == nil
		}
		if b.crack != nil {
			b.crack(&s)
		}
		found := oracle.Judge(simulation.Record(t, h.engine, uint64(c.Schedules), s, b.engine), rule)[0]
		c.Caught, c.Detail = found.Verdict == oracle.Broken, found.Detail
	}
	return c
}

// finder returns the name of the rule that must find the bug.
func (b bug) finder() string {
	if b.own != nil {
		return nameOf(b.own)
	}
	return nameOf(b.rule)
}

// nameOf returns the name of a rule's function.
func nameOf(rule any) string {
	name := runtime.FuncForPC(reflect.ValueOf(rule).Pointer()).Name()
	return name[strings.LastIndexByte(name, '.')+1:]
}
