//go:build linux

package faults

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
)

// A result is what is published of a row on a store: a line of JSON in
// $ELECTION_RESULTS/faults-STORE.ndjson.
type result struct {
	Store    string          `json:"store"`
	Number   int             `json:"number"`
	Letter   string          `json:"letter,omitempty"`
	Fault    string          `json:"fault"`
	Bug      string          `json:"bug,omitempty"` // planted, in which case the line is in bugs-STORE.ndjson
	Applies  bool            `json:"applies"`
	Reason   string          `json:"reason,omitempty"` // why it does not
	Expected string          `json:"expected,omitempty"`
	May      []string        `json:"may,omitempty"`     // the promises that the store may break by its nature
	Verdict  string          `json:"verdict,omitempty"` // yes: it was as expected
	Wrong    []string        `json:"wrong,omitempty"`
	Terms    int             `json:"terms"`
	Overlaps int             `json:"overlaps"`
	Refused  int             `json:"refused"` // writes that the fence refused
	Requests int             `json:"requests"`
	Waits    []wait          `json:"waits"`
	Findings oracle.Findings `json:"findings"`
	History  string          `json:"history,omitempty"` // a file beside this one
}

// A wait is how long a leader was waited for.
type wait struct {
	After string        `json:"after"`
	Took  time.Duration `json:"took_ns"`
	Bound time.Duration `json:"bound_ns"`
}

func (s *stage) result(j judgement, file string) result {
	r := result{
		Store: s.col.name, Number: s.row.number, Letter: s.row.letter, Fault: s.row.fault, Bug: s.row.bug, Applies: true,
		Expected: s.row.expected(), Verdict: "yes", Wrong: j.wrong,
		Terms:    len(j.history.Stretches()),
		Overlaps: oracle.Overlaps(j.history),
		Refused:  len(j.history.Of("", history.Refused)),
		Requests: len(j.history.Of("", history.Sent)),
		Waits:    []wait{},
		Findings: j.findings,
	}
	if len(j.wrong) > 0 {
		r.Verdict = "no"
	}
	for _, rule := range s.row.may {
		r.May = append(r.May, rule(oracle.Evidence{}).Promise)
	}
	for _, w := range oracle.Waits(j.history) {
		r.Waits = append(r.Waits, wait(w))
	}
	if file != "" {
		r.History = filepath.Join("history", filepath.Base(file))
	}
	return r
}

var publishing sync.Mutex

// publish appends a result to the store's file, if results are wanted.
func publish(t testing.TB, r result) {
	dir := os.Getenv("ELECTION_RESULTS")
	if dir == "" {
		return
	}
	file := "faults-" + r.Store + ".ndjson"
	switch {
	case r.Bug != "":
		file = "bugs-" + r.Store + ".ndjson"
	case r.Number == soakNumber:
		file = "soak-" + r.Store + ".ndjson"
	}
	publishing.Lock()
	defer publishing.Unlock()
	require.NoError(t, os.MkdirAll(dir, 0o755))
	f, err := os.OpenFile(filepath.Join(dir, file), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	require.NoError(t, err)
	require.NoError(t, json.NewEncoder(f).Encode(r))
	require.NoError(t, f.Close())
}
