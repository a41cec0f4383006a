package election_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
	"github.com/electkv/election/internal/seam"
	"github.com/electkv/election/internal/sim"
)

var (
	simSeed  = flag.Uint64("sim.seed", 1, "the simulation's first seed")
	simTerms = flag.Int("sim.terms", 10_000, "how many terms to simulate")
	simPlan  = flag.String("sim.schedule", "", "simulate this schedule, as a failure printed it, and nothing else")
)

// The real engine in a world where everything goes wrong keeps every promise.
func TestTheEngineKeepsItsPromisesInTheSimulation(t *testing.T) {
	if *simPlan != "" {
		s, err := sim.Parse(*simPlan)
		require.NoError(t, err)
		v := simulate(t, 0, s, real)
		report(t, &v)
		require.Empty(t, v.findings.Broken())
		return
	}
	total := newCensus()
	defer func() { // whatever it came to
		t.Log(total)
		fmt.Println("simulation: " + total.line()) // test/tally shows it also when all is well
		results(t, "simulation.json", total)
	}()
	for seed := *simSeed; total.Terms < *simTerms; seed = after(seed) {
		var failed *verdict
		check(t, seed, func(rt *rapid.T) {
			v := simulate(t, seed, drawSchedule(rt), real)
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
	require.NoError(t, flag.Set("rapid.checks", "1"))
	require.NoError(t, flag.Set("rapid.nofailfile", "true"))
	defer func() {
		if t.Failed() {
			failed()
		}
	}()
	rapid.Check(seam.Quiet{T: t}, prop)
}

// A verdict is what the oracles say of one schedule.
type verdict struct {
	schedule sim.Schedule
	history  history.History
	findings oracle.Findings
}

// record runs a schedule, and returns its history.
func record(t *testing.T, seed uint64, s sim.Schedule, make engines) (h history.History) {
	synctest.Test(t, func(*testing.T) { h = sim.Run(s, make(s)) })
	c, err := election.New(memkv.New(), "sim", &election.Options{TTL: s.TTL, Margin: s.Margin})
	require.NoError(t, err)
	h.Margin = election.MarginOf(c)
	h.Seed = seed
	h.Command = fmt.Sprintf("go test -run '^%s$' . -args -sim.seed=%d -sim.terms=1", t.Name(), seed)
	return h
}

// simulate runs a schedule and judges it.
func simulate(t *testing.T, seed uint64, s sim.Schedule, make engines) verdict {
	v := verdict{schedule: s, history: record(t, seed, s, make)}
	rules := oracle.All()
	for _, own := range ownRules {
		rules = append(rules, own(s))
	}
	v.findings = oracle.Judge(v.history, rules...)
	return v
}

// report writes down a history that fails, draws it, and says how to run it
// again.
func report(t *testing.T, v *verdict) {
	if v == nil {
		return
	}
	dir := os.Getenv("ELECTION_RESULTS")
	if dir == "" {
		var err error
		dir, err = os.MkdirTemp("", "election-simulation-") //nolint:usetesting // it outlives the test
		require.NoError(t, err)
	}
	path := filepath.Join(dir, fmt.Sprintf("simulation-%d.ndjson", v.history.Seed))
	require.NoError(t, history.Save(path, v.history))
	t.Logf("the history: %s\nthe schedule: %s\n%s\n%s\n%s\nagain: %s", path, v.schedule.String(),
		history.Timeline(v.history, 120), history.Legend(), v.findings, v.history.Command)
}

// A census is what a whole run has shown.
type census struct {
	Seed      uint64         `json:"seed"`
	Schedules int            `json:"schedules"`
	Lined     int            `json:"lined"` // schedules with lines
	Terms     int            `json:"terms"`
	InLine    int            `json:"inLine"`     // terms in those
	Old       int            `json:"oldClients"` // in line there
	Observed  int            `json:"observed"`   // schedules in which observers judge
	Seen      int            `json:"seen"`       // terms in those
	Succeeded int            `json:"succeeded"`  // schedules with a succession
	InOrder   int            `json:"inOrder"`    // terms in those
	Lost      int            `json:"lost"`       // terms that ended against their leader's will
	Stale     int            `json:"fenced"`     // writes that the resource refused
	Overlaps  int            `json:"overlaps"`
	Forced    int            `json:"forced"` // overlaps by an operator's hand
	Requests  int            `json:"requests"`
	Hours     float64        `json:"simulatedHours"`
	Rules     map[string]int `json:"rules"`

	order []string
	began time.Time
}

func newCensus() *census {
	return &census{Seed: *simSeed, Rules: map[string]int{}, began: time.Now()}
}

func (y *census) add(v verdict) {
	y.Schedules++
	terms := v.history.Stretches()
	if v.schedule.Store.Lines {
		y.Lined++
		y.InLine += len(terms)
		y.Old += len(v.history.Of("", history.Placed))
	}
	if v.schedule.Store.Expiry == sim.ByObserver {
		y.Observed++
		y.Seen += len(terms)
	}
	if v.schedule.Order != sim.NoOrder {
		y.Succeeded++
		y.InOrder += len(terms)
	}
	y.Terms += len(terms)
	for _, term := range terms {
		if strings.HasPrefix(term.Cause, election.ErrLost.Error()) {
			y.Lost++
		}
	}
	y.Stale += len(v.history.Of("", history.Refused))
	overlaps := oracle.Overlaps(v.history)
	if f, _ := v.findings.Of("one leader at a time"); f.Verdict == oracle.Broken {
		y.Overlaps += overlaps
	} else {
		y.Forced += overlaps
	}
	y.Requests += len(v.history.Of("", history.Sent))
	y.Hours += v.schedule.Horizon.Hours()
	for _, f := range v.findings {
		if _, known := y.Rules[f.Promise]; !known {
			y.order = append(y.order, f.Promise)
		}
		y.Rules[f.Promise] += f.Count
	}
}

func (y *census) findings() []oracle.Finding {
	all := []oracle.Finding{}
	for _, promise := range y.order {
		all = append(all, oracle.Finding{Promise: promise, Count: y.Rules[promise], Detail: "nothing of the kind happened"})
	}
	return all
}

// line says the most important in one line.
func (y *census) line() string {
	return fmt.Sprintf("seed %d, %d schedules (%d with lines, in which %d old clients stood), %d terms (%d where there are lines, %d in %d successions, %d where observers judge in %d schedules, %d lost), %d overlaps (and %d by an operator's hand), %d stale writes refused, %d requests, %.0f simulated hours, in %.1f s",
		y.Seed, y.Schedules, y.Lined, y.Old, y.Terms, y.InLine, y.InOrder, y.Succeeded, y.Seen, y.Observed, y.Lost, y.Overlaps, y.Forced, y.Stale, y.Requests, y.Hours, time.Since(y.began).Seconds())
}

func (y *census) String() string {
	text := y.line()
	for _, promise := range y.order {
		text += fmt.Sprintf("\n%9d  %s", y.Rules[promise], promise)
	}
	return text
}

// results writes what a test has shown to the folder of the run's results, if
// there is one.
func results(t *testing.T, name string, of any) {
	dir := os.Getenv("ELECTION_RESULTS")
	if dir == "" {
		return
	}
	text, err := json.MarshalIndent(of, "", "  ")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), append(text, '\n'), 0o644))
}
