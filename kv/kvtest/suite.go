package kvtest

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/electkv/election/kv"
)

// A Backend is a store under test, and the hands of others that share it.
type Backend struct {
	// Open returns a new client of the same store, as another process would
	// open it. What it opens it closes with t.Cleanup. Required.
	Open func(t testing.TB) kv.Store

	// TTL is the shortest sensible time to live that the store grants exactly,
	// or nearly so. Zero means one second.
	TTL time.Duration

	// Put writes value at the name's key as another program does: without an
	// expiry, over whatever is there. It is nil if no other program can reach
	// the store's keys; cases that need it are then skipped.
	Put func(t testing.TB, name, value string)

	// Remove deletes the name's key as an operator does, while the lease or
	// session that backs it lives on. A key that is not there is no failure. It
	// is nil if no operator can reach the store's keys; cases that need it are
	// then skipped.
	Remove func(t testing.TB, name string)

	// Line puts value at the end of the line before the name's safe, without an
	// expiry, as another program does that waits there. It is nil if the store is no
	// [kv.Queue], and only then; cases that need lines are then skipped.
	Line func(t testing.TB, name, value string)

	// Quit does to a store from Open what the end of its process would. It is nil if
	// nothing in the store depends on the processes that use it.
	Quit func(t testing.TB, s kv.Store)

	// Requests returns how many requests all clients from Open together have
	// sent to the store so far. It is nil if a store has no requests to count;
	// the cost of a watch is then judged by what it yields alone.
	Requests func() int64
}

// A Case is one sentence of the contract as a test.
type Case struct {
	// Name is a sentence that holds for every store.
	Name string
	// Clause is the part of the documentation of package kv that says so.
	Clause string

	check func(*trial)
	needs need
	alone bool // counts what the whole process or store does
	long  bool // takes long on some store
}

// need says which of a Backend's optional hands a case cannot do without.
type need int

const (
	nothing need = iota
	remove
	putAndRemove
	lines
)

// Cases returns all cases, for callers that run them in a way of their own:
// one after the other, or in testing/synctest bubbles.
func Cases() []Case {
	return slices.Concat(
		createCases, getCases, tokenCases,
		swapCases, takeoverCases, handoverCases,
		refreshCases, deleteCases, staleCases,
		expiryCases, lifetimeCases, invalidCases,
		nameCases, valueCases, signatureCases, foreignCases,
		watchCases, watchEndCases, watchCrowdCases, watchCostCases,
		contextCases, raceCases, queueCases, lastingCases, oneStepCases, vacateCases, boardCases, batchCases, rosterCases,
	)
}

// abreast is how many cases run side by side. They mostly wait.
const abreast = 16

// Run runs every case that fits b as a subtest of t. Cases that count goroutines
// or requests come first, one by one, so nothing else that uses the same process
// or server should run at the same time. The others run side by side; they do
// not use t.Parallel, since their waiting should overlap on a machine with few
// cores too.
func Run(t *testing.T, b Backend) {
	RunCases(t, b, Cases())
}

// RunCases runs some of the cases as Run runs all.
func RunCases(t *testing.T, b Backend, cases []Case) {
	for _, c := range cases {
		if c.alone && c.Fits(b) {
			t.Run(c.Name, func(t *testing.T) { c.Run(t, b) })
		}
	}
	var crowd sync.WaitGroup
	seats := make(chan struct{}, abreast)
	for _, c := range longFirst(cases) {
		if c.alone || !c.Fits(b) {
			continue
		}
		seats <- struct{}{}
		crowd.Go(func() {
			defer func() { <-seats }()
			t.Run(c.Name, func(t *testing.T) { c.Run(t, b) })
		})
	}
	crowd.Wait()
}

// longFirst returns the cases in another order, so that the others do not end long before
// the last one does.
func longFirst(cases []Case) []Case {
	var long, others []Case
	for _, c := range cases {
		if c.long {
			long = append(long, c)
		} else {
			others = append(others, c)
		}
	}
	return append(long, others...)
}

// Fits reports whether b has what the case needs: lines, or the hands of others.
func (c Case) Fits(b Backend) bool {
	switch c.needs {
	case remove:
		return b.Remove != nil
	case putAndRemove:
		return b.Put != nil && b.Remove != nil
	case lines:
		return b.Line != nil && b.Remove != nil
	}
	return true
}

// Run runs the case against b, and reports to t. A case that does not fit b is
// skipped.
func (c Case) Run(t testing.TB, b Backend) {
	t.Helper()
	if !c.Fits(b) {
		t.Skip("the backend has not what it needs")
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s.\nThe contract says: %s", c.Name, c.Clause)
		}
	})
	c.check(newTrial(t, b))
}
