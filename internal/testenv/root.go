//go:build unix

package testenv

import (
	"os"
	"testing"
)

// needRoot skips a test that has networks or disks of its own, for anybody but root.
func needRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("networks and disks of a test's own need root")
	}
}
