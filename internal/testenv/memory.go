package testenv

import (
	"os"
	"testing"
)

// MemoryDir returns a directory that is removed with the test, in memory where the system has a
// place for that, and on disk elsewhere. It is for a file store whose leader is to keep its
// term: an fsync on a disk also waits for what other processes write there, which takes
// seconds while programs are being linked.
func MemoryDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "election-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("testenv: %v", err)
		}
	})
	return dir
}
