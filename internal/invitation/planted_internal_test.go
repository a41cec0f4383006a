package invitation

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/electkv/election/internal/mistake"
)

// A planted flaw, and what is found of it.
type planted struct {
	flaws flaws
	start func(*testing.T, flaws) *world // where the exploration finds it
	depth int
	says  string
}

// Each of these would be an easy mistake to make.
func plantedFlaws() map[string]planted {
	return map[string]planted{
		"a start draws the number of the last start again": {flaws{sameIncarnation: true}, crashed, 7, "twice"},
		"a process is ready although its work goes on":     {flaws{earlyReady: true}, pair, 6, "while it works"},
		"each member is told another list":                 {flaws{ownLists: true}, grown, 4, "has entered it of"},
		"a group is entered by whoever is told of it":      {flaws{oldFormed: true}, grown, 6, "twice|and is in|while it works|never would"},
		"a process waits for two groups":                   {flaws{twoPromises: true}, rivals, 7, "and is in|while it works"},
		"a process joins whatever group it is in":          {flaws{noTicket: true}, doubled, 6, "twice|never would"},
		"a group grows after it was formed":                {flaws{lateReady: true}, joiningAll, 7, "has entered it of"},
	}
}

// crashed are a pair, and 3, which has worked alone and has crashed.
func crashed(t *testing.T, f flaws) *world {
	w := pair(t, f)
	w.pool = nil
	w.crash(2)
	return w
}

// doubled is a group that 3 has not heard of yet, and a late copy of what has told it to join.
func doubled(t *testing.T, f flaws) *world {
	w := grown(t, f)
	w.put(flight{0, 2, Join{Number: w.actors[0].node.group.Number, Old: Number{w.actors[2].id, w.actors[2].node.incarnation, 1}}})
	return w
}

func TestTheExplorationFindsEachPlantedFlaw(t *testing.T) {
	for name, p := range plantedFlaws() {
		t.Run(name, func(t *testing.T) {
			w := p.start(t, p.flaws)
			w.faults = 2
			e := newExplorer()
			found := e.Run(w, p.depth)
			if !regexp.MustCompile(p.says).MatchString(found) {
				mistake.Missed(t, fmt.Sprintf("%d worlds say %q", e.Worlds.Load(), found))
			}
			t.Logf("%d worlds: %s", e.Worlds.Load(), found)
		})
	}
}

func TestRandomSchedulesFindEachPlantedFlaw(t *testing.T) {
	for name, p := range plantedFlaws() {
		t.Run(name, func(t *testing.T) {
			says := regexp.MustCompile(p.says)
			for seed := range uint64(200) {
				if c := wander(seed, p.flaws); says.MatchString(c.trouble) {
					t.Logf("seed %d: %s", seed, c.trouble)
					return
				}
			}
			mistake.Missed(t, "none of 200 schedules came to harm")
		})
	}
}
