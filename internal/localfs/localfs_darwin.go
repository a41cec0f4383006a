package localfs

import (
	"io/fs"
	"slices"

	"golang.org/x/sys/unix"
)

// Of returns the kind of file system that path is on (statfs(2)). The flag MNT_LOCAL
// is set for FUSE too.
func Of(path string) (Kind, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return Kind{}, &fs.PathError{Op: "statfs", Path: path, Err: err}
	}
	name := unix.ByteSliceToString(st.Fstypename[:])
	local := slices.Contains([]string{"apfs", "hfs", "exfat", "msdos", "tmpfs", "ufs", "zfs", "udf", "ntfs"}, name)
	return Kind{Name: name, Local: local && st.Flags&unix.MNT_LOCAL != 0}, nil
}
