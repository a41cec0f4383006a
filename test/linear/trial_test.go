//go:build unix

package linear_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/linear"
	"github.com/electkv/election/kv"
)

const (
	// clients want the same safes.
	clients = 5
	// patience is how long the search for a story may take.
	patience = 2 * time.Minute
	// ample is a TTL that no trial outlasts.
	ample = 6 * time.Hour
)

// A subject is a store on trial.
type subject struct {
	name string
	// open returns the store of a client, who has a connection of its own. The
	// last two of them are those who let records fade.
	open   func(client int) kv.Store
	faults []fault
	// brief is a TTL that records often outlive, zero if none is to.
	brief time.Duration
	// ops is how many operations show what is planted, if 3000 may not.
	ops int
	// judged returns what of the history is judged, all of it if nil.
	judged func([]linear.Operation) []linear.Operation
	// shares says that records come to share leases.
	shares bool
}

// A trial is one run of a crowd against a subject.
type trial struct {
	testing.TB
	subject
	seed     uint64
	recorder *linear.Recorder

	gate           *gate
	unknown        atomic.Int64 // outcomes of the crowd
	struck, harmed map[string]int
	took           time.Duration // the check
}

// A result is what is published of a trial.
type result struct {
	Store      string `json:"store"`
	Seed       uint64 `json:"seed"`
	Operations int    `json:"operations"`
	Unknown    int    `json:"unknown"`
	Names      int    `json:"names"`
	Faults     int    `json:"faults"`
	Kept       bool   `json:"kept"`
	Detail     string `json:"detail"`
}

func newTrial(t testing.TB, ops int, recorder *linear.Recorder, s subject) *trial {
	seed := *flagSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("%s: -seed %d -ops %d", s.name, seed, ops)
	s.ops = ops
	return &trial{
		TB: t, subject: s, seed: seed, recorder: recorder, gate: newGate(),
		struck: make(map[string]int), harmed: make(map[string]int),
	}
}

// try tries a subject, publishes the result, and fails the test unless the store
// was linearizable and was put to the test at all.
func try(t *testing.T, recorder *linear.Recorder, s subject) {
	t.Helper()
	tr := newTrial(t, *flagOps, recorder, s)
	verdict := tr.run()
	tr.publish(verdict)
	switch verdict.Result {
	case linear.Kept:
	case linear.Broken, linear.Undecided:
		files, err := verdict.Save(folder(fmt.Sprintf("linear-%s-%d", s.name, tr.seed)))
		require.NoError(t, err)
		t.Fatalf("%s: %s at %q; see %q", s.name, verdict.Result, verdict.Names, files)
	}
	require.NotZero(t, verdict.Unknown, "nothing was unknown, so nothing is proved")
	require.NotEmpty(t, tr.harmed, "no fault harmed anybody, so nothing is proved")
	require.Zero(t, invalid(tr.recorder.History()), "requests that the store can never serve")
	if s.shares {
		require.NotZero(t, moved(tr.recorder.History()), "nothing has moved, so nothing is proved of that")
	}
}

// folder returns where files are left, which need not be there.
func folder(name string) string {
	dir := os.Getenv("ELECTION_RESULTS")
	if dir == "" {
		dir = os.TempDir()
	}
	return filepath.Join(dir, name)
}

func invalid(history []linear.Operation) int {
	n := 0
	for _, op := range history {
		if op.Outcome == linear.Invalid {
			n++
		}
	}
	return n
}

// run lets the crowd loose and the faults strike, and judges the history.
func (tr *trial) run() linear.Verdict {
	tr.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var stores []kv.Store
	for i := range clients {
		stores = append(stores, tr.open(i))
	}
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		linear.Crowd{
			Seed: tr.seed, Ops: tr.ops, OpsPerSafe: 40, MaxUnknown: 10,
			TTL: ample, Timeout: timeout, Prefix: "ample-", Whole: true, Share: true, Rest: tr.rest(),
		}.Run(ctx, stores...)
	}()
	waited := tr.waitForFading(ctx)
	if len(tr.faults) > 0 {
		tr.torment(finished)
	} else {
		tr.gate.open(tr.ops + 1) // that is, for good
	}
	<-finished
	cancel()
	<-waited

	history := tr.recorder.History()
	if tr.judged != nil {
		history = tr.judged(history)
	}
	start := time.Now()
	verdict, err := linear.Check(history, patience)
	require.NoError(tr, err)
	tr.took = time.Since(start)
	return verdict
}

// timeout bounds each operation.
const timeout = 500 * time.Millisecond

// rest lets a client wait at the gate, and before it after an outcome that is
// unknown, the longer the more of them it has had: an outage shall not use up
// the operations.
func (tr *trial) rest() func(context.Context, int, bool) {
	var failures [clients]int
	return func(ctx context.Context, client int, unknown bool) {
		if unknown {
			tr.unknown.Add(1)
			failures[client]++
			pause(ctx, 25*time.Millisecond<<min(failures[client], 5))
		} else {
			failures[client] = 0
		}
		tr.gate.pass(ctx)
	}
}

// waitForFading has two more clients use safes of their own, so slowly that
// records fade. The channel is closed when they have stopped.
func (tr *trial) waitForFading(ctx context.Context) <-chan struct{} {
	stopped := make(chan struct{})
	if tr.brief == 0 {
		close(stopped)
		return stopped
	}
	stores := []kv.Store{tr.open(clients), tr.open(clients + 1)}
	// Each has a number of its own for its records.
	random := []*rand.Rand{rand.New(rand.NewPCG(tr.seed, 200)), rand.New(rand.NewPCG(tr.seed, 201))}
	go func() {
		defer close(stopped)
		linear.Crowd{
			Seed: tr.seed + 1, Ops: tr.ops, OpsPerSafe: 20, MaxUnknown: 10,
			TTL: tr.brief, Timeout: timeout, Prefix: "brief-", Whole: true, Share: true,
			Rest: func(ctx context.Context, client int, _ bool) {
				pause(ctx, time.Duration(random[client].Int64N(int64(tr.brief))))
			},
		}.Run(ctx, stores...)
	}()
	return stopped
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// publish prints the result, and writes it to a file if there is a folder for it.
func (tr *trial) publish(verdict linear.Verdict) {
	tr.Helper()
	r := result{
		Store: tr.name, Seed: tr.seed, Operations: verdict.Operations, Unknown: verdict.Unknown,
		Names: verdict.Safes, Kept: verdict.Result == linear.Kept,
	}
	var faults []string
	for _, f := range tr.faults {
		r.Faults += tr.struck[f.name]
		faults = append(faults, fmt.Sprintf("%s %d/%d", f.name, tr.harmed[f.name], tr.struck[f.name]))
	}
	r.Detail = fmt.Sprintf("%s; faults that left an outcome unknown, of all: %s; %d lost writes were seen to have happened; %d reads found a record faded; %d refreshes moved one to another lease; checked in %v",
		verdict.Result, strings.Join(faults, ", "), verdict.Surfaced, faded(tr.recorder.History()), moved(tr.recorder.History()), tr.took.Round(time.Millisecond))
	if len(verdict.Names) > 0 {
		r.Detail += fmt.Sprintf("; at %q", verdict.Names)
	}
	tr.Logf("%s: %d operations, %d of unknown outcome, %d names, %d faults, %s", r.Store, r.Operations, r.Unknown, r.Names, r.Faults, r.Detail)
	if os.Getenv("ELECTION_RESULTS") == "" {
		return
	}
	text, err := json.MarshalIndent(r, "", "  ")
	require.NoError(tr, err)
	require.NoError(tr, os.MkdirAll(os.Getenv("ELECTION_RESULTS"), 0o755))
	require.NoError(tr, os.WriteFile(folder("linear-"+tr.name+".json"), append(text, '\n'), 0o644))
}

// faded counts the reads that found nothing in a safe where records fade.
func faded(history []linear.Operation) int {
	n := 0
	for _, op := range history {
		if op.Kind == linear.Get && op.Outcome == linear.Vacant && strings.HasPrefix(op.Name, "brief-") {
			n++
		}
	}
	return n
}

// moved counts the refreshes that found a record with another lease than the one given.
func moved(history []linear.Operation) int {
	n := 0
	for _, op := range history {
		if op.Kind == linear.Refresh && op.Outcome == linear.Done && op.Got.Lease != op.Given.Lease {
			n++
		}
	}
	return n
}
