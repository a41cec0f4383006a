package election_test

import (
	"flag"
	"testing"

	"github.com/electkv/election/internal/simulation"
	"github.com/electkv/election/internal/simulation/leases"
)

var (
	simSeed  = flag.Uint64("sim.seed", 1, "the simulation's first seed")
	simTerms = flag.Int("sim.terms", 10_000, "how many terms to simulate")
	simPlan  = flag.String("sim.schedule", "", "simulate this schedule, as a failure printed it, and nothing else")
)

// The real engine in a world where everything goes wrong keeps every promise.
func TestTheEngineKeepsItsPromisesInTheSimulation(t *testing.T) {
	simulation.Prove(t, engine, simulation.Plan{Seed: *simSeed, Terms: *simTerms, Schedule: *simPlan})
}

func TestASimulatedScheduleRepeatsItsHistory(t *testing.T) { simulation.Repeat(t, engine) }

func TestTheSimulationShowsThatTheMarginIsTight(t *testing.T) { simulation.TightMargin(t, engine) }

func TestTheSimulationShowsThatTheLeastMarginPaysForTheWorksReaction(t *testing.T) {
	simulation.LeastMargin(t, engine)
}

func TestTermsThatShareLeasesAreSafeInTheSimulation(t *testing.T) { leases.Prove(t, engine) }

func TestTheBugsOfSharedLeasesAreCaughtInTheSimulation(t *testing.T) { leases.CatchBugs(t, engine) }
