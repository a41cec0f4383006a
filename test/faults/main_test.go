//go:build linux

package faults

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

var (
	full     = flag.Bool("faults.full", false, "play every fault, not only the short choice")
	only     = flag.String("faults.store", "", "play on this store only")
	seed     = flag.Uint64("faults.seed", 1, "seed of what is left to chance")
	parallel = flag.Int("faults.parallel", 4, "how many stages play at once: they mostly wait")
)

// TestMain is the candidates' main as well: they are this program, started
// again.
func TestMain(m *testing.M) {
	if text, ok := os.LookupEnv(partVariable); ok {
		os.Exit(act(text))
	}
	flag.Parse()
	if err := flag.Set("test.parallel", fmt.Sprint(*parallel)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	os.Exit(m.Run())
}
