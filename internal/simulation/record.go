package simulation

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
	"github.com/electkv/election/internal/seam"
	"github.com/electkv/election/internal/sim"
)

// A verdict is what the oracles say of one schedule.
type verdict struct {
	schedule sim.Schedule
	history  history.History
	findings oracle.Findings
}

// Record runs a schedule, and returns its history. It names the test that runs the
// same again.
func Record(t *testing.T, engine seam.Engine, seed uint64, s sim.Schedule, make Engine) (h history.History) {
	synctest.Test(t, func(*testing.T) {
		h = sim.Run(s, func(n *sim.Node) sim.Engine { return make(&Node{n, engine}) })
	})
	c, err := election.New(memkv.New(), "sim", &election.Options{TTL: s.TTL, Margin: s.Margin})
	require.NoError(t, err)
	h.Margin = engine.Margin(c)
	h.Seed = seed
	h.Command = fmt.Sprintf("go test -run '^%s$' . -args -sim.seed=%d -sim.terms=1", t.Name(), seed)
	return h
}

// simulate runs a schedule and judges it.
func simulate(t *testing.T, engine seam.Engine, seed uint64, s sim.Schedule) verdict {
	v := verdict{schedule: s, history: Record(t, engine, seed, s, Real)}
	rules := oracle.All()
	for _, own := range Rules() {
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

// Results writes what a test has shown to the folder of the run's results, if
// there is one.
func Results(t *testing.T, name string, of any) {
	dir := os.Getenv("ELECTION_RESULTS")
	if dir == "" {
		return
	}
	text, err := json.MarshalIndent(of, "", "  ")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), append(text, '\n'), 0o644))
}
