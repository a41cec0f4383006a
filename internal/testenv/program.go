//go:build unix

package testenv

import (
	"bytes"
	"os"
	"testing"
)

// StartPrograms starts n servers of the test's own that are one program. Each is
// told by its environment what it is to do: env gets the addresses of all, and
// which of them is its own, where it has to accept connections. Its current folder
// is empty at first, and it has no other. The test fails if one of them reports a
// data race.
func StartPrograms(t testing.TB, n int, name, path string, env func(addrs []string, i int) []string) []*Server {
	t.Helper()
	nodes := make([]*Server, n)
	for i := range nodes {
		s, err := newServer(name, path, accepts)
		if err != nil {
			t.Fatalf("testenv: %v", err)
		}
		nodes[i] = s
	}
	all := addrs(nodes)
	for i, s := range nodes {
		s.env = env(all, i)
	}
	startAll(t, nodes)
	t.Cleanup(func() {
		for _, s := range nodes {
			s.finish()
			text, err := os.ReadFile(s.logFile())
			s.must(err)
			if bytes.Contains(text, []byte("DATA RACE")) {
				t.Errorf("testenv: %s at %s:\n%s", s.name, s.Addr(), text)
			} else if t.Failed() {
				t.Logf("testenv: %s at %s: %s", s.name, s.Addr(), s.logTail())
			}
		}
	})
	return nodes
}
