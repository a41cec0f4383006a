//go:build unix

// Package succession_test plays elections with a succession on real servers, and
// counts what a hand-over costs them.
//
//	go test ./test/succession                          # all of it
//	go test ./test/succession -run TestRequests -v     # the table of requests
//
// The candidates are of this process, each with a client and a way to the server
// of its own, which can be cut. They write down what they believe, and package
// oracle judges that by one clock. What they ask of their stores is noted; what
// that costs a server, the server itself is asked.
package succession_test

import (
	"flag"
	"fmt"
	"os"
	"testing"
)

// TestMain has the stores tested side by side on small machines too: they mostly
// wait.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "10"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	os.Exit(m.Run())
}
