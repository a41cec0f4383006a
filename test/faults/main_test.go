//go:build linux

package faults

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

var (
	full     = flag.Bool("faults.full", false, "play every fault, not only the short choice")
	only     = flag.String("faults.store", "", "play on this store only")
	seed     = flag.Uint64("faults.seed", 1, "seed of what is left to chance")
	soak     = flag.Duration("faults.soak", 0, "play nothing but random faults, on -faults.store, for so long")
	stretch  = flag.Int("faults.stretch", 0, "the first stretch of the random faults to play")
	parallel = flag.Int("faults.parallel", 4, "how many stages play at once: they mostly wait")
)

// TestMain is the main of candidates and members as well: they are this program,
// started again.
func TestMain(m *testing.M) {
	if text, ok := os.LookupEnv(partVariable); ok {
		os.Exit(act(text))
	}
	if text, ok := os.LookupEnv(memberVariable); ok {
		os.Exit(serve(text))
	}
	flag.Parse()
	names := []string{}
	for _, c := range columns() {
		names = append(names, c.name)
	}
	if *only != "" && !slices.Contains(names, *only) {
		fmt.Fprintf(os.Stderr, "-faults.store=%s: there is no such store; want one of %s\n", *only, strings.Join(names, ", "))
		os.Exit(2)
	}
	skip := "^TestSoak$"
	if more := flag.Lookup("test.skip").Value.String(); more != "" {
		skip += "|" + more
	}
	settings := map[string]string{"test.parallel": fmt.Sprint(*parallel), "test.skip": skip}
	if *soak > 0 {
		settings = map[string]string{"test.run": "^TestSoak$"}
	}
	for name, value := range settings {
		if err := flag.Set(name, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	os.Exit(m.Run())
}
