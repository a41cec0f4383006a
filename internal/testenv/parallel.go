//go:build unix

package testenv

import (
	"flag"
	"strconv"
)

// Parallel sets how many tests of a package may run at the same time, unless the command line does:
// those that wait most of the time, however few cores there are. It is for the beginning of TestMain.
func Parallel(n int) {
	if err := flag.Set("test.parallel", strconv.Itoa(n)); err != nil {
		panic(err) // testing has no such flag any more
	}
}
