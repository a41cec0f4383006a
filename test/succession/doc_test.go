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
	"os"
	"testing"

	"github.com/electkv/election/internal/testenv"
)

// TestMain has the stores tested side by side on small machines too.
func TestMain(m *testing.M) {
	testenv.Parallel(10)
	os.Exit(m.Run())
}
