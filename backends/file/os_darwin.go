package filekv

import (
	"fmt"
	"io/fs"
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot reads CLOCK_MONOTONIC, which counts time asleep on this system and
// cannot be set.
func sinceBoot() (time.Duration, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		return 0, fmt.Errorf("read CLOCK_MONOTONIC: %w", err)
	}
	return time.Duration(t.Nano()), nil
}

// clockName names the boot of the host.
func clockName() (string, error) {
	return unix.Sysctl("kern.bootsessionuuid")
}

// networkFS returns the kind of network file system that path is on, or "".
func networkFS(path string) (string, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return "", &fs.PathError{Op: "statfs", Path: path, Err: err}
	}
	if st.Flags&unix.MNT_LOCAL != 0 {
		return "", nil
	}
	return unix.ByteSliceToString(st.Fstypename[:]), nil
}
