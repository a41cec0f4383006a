package simulation

import (
	"flag"
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/electkv/election/internal/seam"
	"github.com/electkv/election/internal/sim"
)

// A Plan is what to simulate.
type Plan struct {
	Seed     uint64 // of the first schedule
	Terms    int    // how many to simulate
	Schedule string // this one, as a failure printed it, and nothing else
}

// Prove has the real engine keep every promise in a world where everything goes
// wrong.
func Prove(t *testing.T, engine seam.Engine, plan Plan) {
	if plan.Schedule != "" {
		s, err := sim.Parse(plan.Schedule)
		require.NoError(t, err)
		v := simulate(t, engine, 0, s)
		report(t, &v)
		require.Empty(t, v.findings.Broken())
		return
	}
	total := newCensus(plan.Seed)
	defer func() { // whatever it came to
		t.Log(total)
		fmt.Println("simulation: " + total.line()) // test/tally shows it also when all is well
		Results(t, "simulation.json", total)
	}()
	for seed := plan.Seed; total.Terms < plan.Terms; seed = after(seed) {
		var failed *verdict
		check(t, seed, func(rt *rapid.T) {
			v := simulate(t, engine, seed, drawSchedule(rt))
			total.add(v)
			if broken := v.findings.Broken(); len(broken) > 0 {
				failed = &v
				rt.Fatalf("%s", broken)
			}
		}, func() { report(t, failed) })
	}
	if total.Terms < 10_000 {
		return // a few schedules need not show everything
	}
	for _, f := range total.findings() {
		require.NotZerof(t, f.Count, "%s: %s: the simulation must show it", f.Promise, f.Detail)
	}
}

// after returns the seed of the next schedule, which is never zero.
func after(seed uint64) uint64 { return max(seed*6364136223846793005+1442695040888963407, 1) }

// check runs one schedule of a seed, and shrinks it if it fails.
func check(t *testing.T, seed uint64, prop func(*rapid.T), failed func()) {
	require.NoError(t, flag.Set("rapid.seed", strconv.FormatUint(seed, 10)))
	checks := "1"
	if testing.Short() {
		checks = "5" // of which rapid makes a fifth
	}
	require.NoError(t, flag.Set("rapid.checks", checks))
	require.NoError(t, flag.Set("rapid.nofailfile", "true"))
	defer func() {
		if t.Failed() {
			failed()
		}
	}()
	rapid.Check(seam.Quiet{T: t}, prop)
}
