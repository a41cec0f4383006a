package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

const simulationTest = "TestTheEngineKeepsItsPromisesInTheSimulation"

func simulationWork() work {
	return work{
		name:  "simulation",
		title: "Simulation",
		about: "The engine's own simulation (go test -run " + simulationTest + "), on one core: terms that were simulated and judged in a second.",
		metrics: []metric{
			{Name: "terms", Unit: rate, Title: "terms"},
		},
		limit:    10 * time.Minute,
		settings: one(setting{Processes: 1}),
		suits:    func(c contender, _ setting) bool { return c.Store == inMemory && c.Name == plainName },
		run:      runSimulation,
	}
}

func runSimulation(ctx context.Context, t *trial) error {
	dir, err := os.MkdirTemp("", "election-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "election.test")
	build := exec.CommandContext(ctx, "go", "test", "-c", "-o", binary, ".")
	build.Dir = t.options.source
	build.Env = append(os.Environ(), "GOWORK=off")
	if text, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("go test -c: %w\n%s", err, text)
	}
	run := exec.CommandContext(ctx, binary, "-test.run=^"+simulationTest+"$", fmt.Sprintf("-sim.terms=%d", t.options.terms))
	run.Dir = t.options.source
	run.Env = append(os.Environ(), "GOMAXPROCS=1", "ELECTION_RESULTS="+dir)
	began := now()
	if text, err := run.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", simulationTest, err, text)
	}
	took := now() - began
	text, err := os.ReadFile(filepath.Join(dir, "simulation.json"))
	if err != nil {
		return err
	}
	var census struct{ Terms int }
	if err := json.Unmarshal(text, &census); err != nil {
		return err
	}
	t.record("terms", float64(census.Terms)/took.Seconds())
	return nil
}
