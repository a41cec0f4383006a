package election_test

import (
	"flag"
	"testing"

	"github.com/electkv/election"
	"github.com/electkv/election/internal/scenario"
	"github.com/electkv/election/internal/seam"
)

// engine is what the rooms of these tests are given of the engine.
var engine = seam.Engine{
	SetClock:  (*election.Candidate).SetClock,
	SetJitter: (*election.Candidate).SetJitter,
	Margin:    election.MarginOf,
	Trust:     (*election.Term).Trust,
}

const scenarios = "testdata/succession"

var update = flag.Bool("update", false, "write what the scenarios come to into their files")

// The timelines on the page are what its scenarios come to. With -update, they are drawn
// before the scenarios' own files are written.
func TestScenariosAreDrawnOnThePage(t *testing.T) {
	scenario.Draw(t, engine, "docs/succession.md", scenarios, *update)
}

// The scenarios come to what stands in their files.
func TestScenarios(t *testing.T) {
	scenario.Compare(t, engine, scenarios, *update)
}

// Whatever befalls the candidates, in whatever order, what every scenario asserts holds.
func TestScenariosThatNobodyThoughtOf(t *testing.T) {
	scenario.Explore(t, engine)
}
