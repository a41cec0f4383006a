//go:build unix

// Package linear_test lets a crowd of clients loose on real servers while
// networks, processes and leaders fail, and checks that each store was
// linearizable all the same: package linear says what that means.
//
//	go test ./test/linear                            # a short run
//	go test ./test/linear -ops 20000 -timeout 30m    # the full one
//	go test ./test/linear -run Redis -seed 42
//
// The seed decides what the clients do and which faults strike, and not how the
// machine interleaves them. So a history that was found broken is kept in a
// file, which linear.Check judges again.
//
// If ELECTION_RESULTS names a folder, each store's result is written there, to
// linear-<store>.json.
package linear_test

import (
	"flag"
	"os"
	"testing"
)

var (
	flagOps  = flag.Int("ops", 800, "operations a store")
	flagSeed = flag.Uint64("seed", 0, "seed of clients and faults; 0 takes a new one")
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(workerVariable); dir != "" {
		os.Exit(work(dir))
	}
	os.Exit(m.Run())
}
