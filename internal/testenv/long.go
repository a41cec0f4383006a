//go:build unix

package testenv

import "testing"

// Long skips a test in short mode: one that takes long, and whose like is run on the same
// kind of server all the same. "make test" runs in short mode, "make test/all" does not.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip(`"make test/all" runs this`)
	}
}
