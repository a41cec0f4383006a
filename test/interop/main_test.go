//go:build linux

package interop

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"
)

var (
	stretch  = flag.Duration("interop.stretch", 15*time.Second, "how long each fleet is troubled")
	seed     = flag.Uint64("interop.seed", 0, "seed of what is done to the fleets; 0: a new one")
	parallel = flag.Int("interop.parallel", 8, "how many fleets there are at a time: they mostly wait")
)

// TestMain is the main of the fleets' processes as well: they are this program,
// started again.
func TestMain(m *testing.M) {
	if text, ok := os.LookupEnv(partVariable); ok {
		os.Exit(act(text))
	}
	flag.Parse()
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano()) % 1_000_000
	}
	fmt.Printf("interop: -interop.seed=%d -interop.stretch=%v\n", *seed, *stretch)
	if err := flag.Set("test.parallel", fmt.Sprint(*parallel)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	os.Exit(m.Run())
}
