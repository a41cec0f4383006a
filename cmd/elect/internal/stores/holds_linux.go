package stores

import (
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// openBelow returns copies of this process's descriptors of files directly below
// dir. flock(2) locks belong to what a descriptor refers to, so a copy holds the
// lock as well.
func openBelow(dir string) []*os.File {
	const fds = "/proc/self/fd"
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil
	}
	entries, _ := os.ReadDir(fds)
	found := []*os.File{}
	for _, entry := range entries {
		path, err := os.Readlink(filepath.Join(fds, entry.Name()))
		if err != nil || filepath.Dir(path) != dir {
			continue
		}
		fd, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3); err == nil {
			found = append(found, os.NewFile(uintptr(dup), path))
		}
	}
	return found
}
