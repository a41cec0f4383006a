package filekv

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot reads CLOCK_BOOTTIME, which counts time asleep and cannot be set.
func sinceBoot() (time.Duration, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return 0, fmt.Errorf("read CLOCK_BOOTTIME: %w", err)
	}
	return time.Duration(t.Nano()), nil
}

// clockName names what readings of sinceBoot can be compared within: a boot of
// the host and a time namespace (time_namespaces(7)).
func clockName() (string, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	space, err := os.Readlink("/proc/self/ns/time")
	if errors.Is(err, fs.ErrNotExist) { // a kernel without time namespaces
		return strings.TrimSpace(string(boot)), nil
	}
	return strings.TrimSpace(string(boot)) + " " + space, err
}

// networkFS returns the kind of network or cluster file system that path is on,
// or "". It knows the common ones (statfs(2)).
func networkFS(path string) (string, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return "", &fs.PathError{Op: "statfs", Path: path, Err: err}
	}
	switch uint32(st.Type) {
	case unix.NFS_SUPER_MAGIC:
		return "NFS", nil
	case unix.SMB_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC:
		return "SMB", nil
	case unix.AFS_SUPER_MAGIC, unix.AFS_FS_MAGIC, unix.CODA_SUPER_MAGIC:
		return "AFS", nil
	case unix.NCP_SUPER_MAGIC:
		return "NCP", nil
	case unix.CEPH_SUPER_MAGIC:
		return "Ceph", nil
	case unix.OCFS2_SUPER_MAGIC:
		return "OCFS2", nil
	case 0x01161970:
		return "GFS2", nil
	case 0x0bd00bd0:
		return "Lustre", nil
	}
	return "", nil
}
