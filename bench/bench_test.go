package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMain is the main of the candidates' processes as well: they are this program,
// started again.
func TestMain(m *testing.M) {
	if os.Getenv(workerVariable) != "" {
		os.Exit(beWorker())
	}
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil { // they mostly wait
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	os.Exit(m.Run())
}

// Every work runs, once and small, with every contender that it suits, and every
// figure is one. How large it is, is nobody's business here.
func TestEveryWorkRunsAndTellsAllItsFigures(t *testing.T) {
	var mu sync.Mutex
	var all results
	t.Cleanup(func() {
		if !t.Failed() {
			reportIsWhole(t, all)
		}
	})
	for _, w := range works() {
		for _, store := range storeNames {
			o := quickOptions()
			o.stores, o.works = []string{store}, []string{w.name}
			expected := expectedRuns(w, store, o)
			if len(expected) == 0 {
				continue
			}
			t.Run(w.name+" on "+store, func(t *testing.T) {
				t.Parallel()
				r, err := runAll(t.Context(), o, "go test", io.Discard)
				require.NoError(t, err)
				require.ElementsMatch(t, expected, names(r))
				for _, run := range r.Runs {
					plausible(t, w, run)
				}
				mu.Lock()
				defer mu.Unlock()
				r.Runs = append(all.Runs, r.Runs...)
				all = r
			})
		}
	}
}

func expectedRuns(w work, store string, o options) []string {
	var all []string
	for _, s := range w.settings(o) {
		for _, c := range contenders() {
			if c.Store == store && w.suits(c, s) {
				all = append(all, c.Name+" "+s.String())
			}
		}
	}
	return all
}

func names(r results) []string {
	var all []string
	for _, run := range r.Runs {
		all = append(all, run.Contender+" "+run.Setting.String())
	}
	return all
}

// missing are figures that some contenders cannot have: peers do not tell how long
// they trust a lock, and Redis has no Raft.
var missing = []string{"margin", "commits", "proposals"}

// signed are figures that may be below zero or zero: a difference of instants, or of
// so few goroutines and requests that others' show.
var signed = []string{"overshoot", "goroutines", "requests", "bytes", "cpu", "server", "memory", "connections", "commits", "proposals", "acknowledged", "claims", "ended", "again", "resting", "idle"}

func plausible(t *testing.T, w work, r run) {
	t.Helper()
	require.Emptyf(t, r.Error, "%s, %s", r.Store, r.Contender)
	for _, m := range w.metrics {
		s, ok := r.Metrics[m.Name]
		if !ok && slices.Contains(missing, m.Name) {
			continue
		}
		require.Truef(t, ok, "%s, %s: %s is missing", r.Store, r.Contender, m.Title)
		require.Positive(t, s.N)
		if !slices.Contains(signed, m.Name) {
			require.Positivef(t, s.Min, "%s, %s: %s", r.Store, r.Contender, m.Title)
		}
		require.True(t, slices.IsSorted([]float64{s.Min, s.P10, s.Median, s.P90, s.P99, s.Max}))
	}
}

// reportIsWhole writes the results and the report of them, and looks for each run.
func reportIsWhole(t *testing.T, r results) {
	o := quickOptions()
	o.out = t.TempDir()
	path, err := r.save(o.resultsFolder())
	require.NoError(t, err)
	read, err := loadResults(path)
	require.NoError(t, err)
	require.Equal(t, r.Runs, read.Runs)
	require.NoError(t, writeReport(o, []string{path}))
	text, err := os.ReadFile(filepath.Join(o.out, "RESULTS.md"))
	require.NoError(t, err)
	for _, run := range r.Runs {
		require.Contains(t, string(text), fmt.Sprintf("| %s | %s |", run.Store, run.Contender))
	}
}

// What a server counts while nobody but the meter asks it is nothing.
func TestAMeterDoesNotCountItself(t *testing.T) {
	for _, store := range []string{inEtcd, inConsul, inRedis} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			stage := &stage{}
			server, err := startServer(stage, store)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, stage.close()) })
			_, err = server.meter.read(t.Context()) // connects
			require.NoError(t, err)
			require.Eventually(t, func() bool {
				before, err := server.meter.read(t.Context())
				require.NoError(t, err)
				after, err := server.meter.read(t.Context())
				require.NoError(t, err)
				return after.since(before).Requests == 0
			}, time.Minute, 100*time.Millisecond)
			version, err := server.meter.version(t.Context())
			require.NoError(t, err)
			require.Regexp(t, `^\d+\.\d+\.\d+`, version)
		})
	}
}

func TestAMeterCountsWhatOthersAsk(t *testing.T) {
	for _, store := range []string{inEtcd, inConsul, inRedis} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			stage := &stage{}
			server, err := startServer(stage, store)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, stage.close()) })
			c, err := contenderNamed(store, "limit")
			require.NoError(t, err)
			family, err := c.open(seat{Addr: server.addr})
			require.NoError(t, err)
			defer family.close()
			put := family.(batonFamily).put
			require.NoError(t, put(t.Context(), "warm"))
			before, err := server.meter.read(t.Context())
			require.NoError(t, err)
			for i := range 20 {
				require.NoError(t, put(context.Background(), fmt.Sprint(i)))
			}
			after, err := server.meter.read(t.Context())
			require.NoError(t, err)
			counted := after.since(before)
			require.GreaterOrEqual(t, counted.Requests, 20.0)
			if store != inRedis {
				require.GreaterOrEqual(t, counted.Proposals, 20.0)
			}
		})
	}
}
