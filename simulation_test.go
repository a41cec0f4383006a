package election_test

import (
	"flag"
	"testing"

	"github.com/electkv/election/internal/simulation"
	"github.com/electkv/election/internal/simulation/leases"
)

var (
	simSeed  = flag.Uint64("sim.seed", 1, "the simulation's first seed")
	simTerms = flag.Int("sim.terms", 0, "how many terms to simulate (0: 10,000, in short mode 2,000)")
	simPlan  = flag.String("sim.schedule", "", "simulate this schedule, as a failure printed it, and nothing else")
)

// The real engine in a world where everything goes wrong keeps every promise.
func TestTheEngineKeepsItsPromisesInTheSimulation(t *testing.T) {
	terms := *simTerms
	if terms == 0 {
		terms = 10_000
		if testing.Short() {
			terms = 2_000
		}
	}
	simulation.Prove(t, engine, simulation.Plan{Seed: *simSeed, Terms: terms, Schedule: *simPlan})
}

func TestASimulatedScheduleRepeatsItsHistory(t *testing.T) { simulation.Repeat(t, engine) }

func TestTheSimulationShowsThatTheMarginIsTight(t *testing.T) { simulation.TightMargin(t, engine) }

func TestTheSimulationShowsThatTheLeastMarginPaysForTheWorksReaction(t *testing.T) {
	simulation.LeastMargin(t, engine)
}

func TestTermsThatShareLeasesAreSafeInTheSimulation(t *testing.T) { leases.Prove(t, engine) }

func TestTheBugsOfSharedLeasesAreCaughtInTheSimulation(t *testing.T) { leases.CatchBugs(t, engine) }
