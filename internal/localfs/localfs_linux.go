package localfs

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Of returns the kind of file system that path is on (statfs(2)).
func Of(path string) (Kind, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return Kind{}, &fs.PathError{Op: "statfs", Path: path, Err: err}
	}
	magic := uint32(st.Type)
	if name, ok := local()[magic]; ok {
		return Kind{Name: name, Local: true}, nil
	}
	if name := mounted(path); name != "" {
		return Kind{Name: name}, nil
	}
	if name, ok := shared()[magic]; ok {
		return Kind{Name: name}, nil
	}
	return Kind{Name: fmt.Sprintf("type %#x", magic)}, nil
}

// local are the kinds that one kernel mounts: on its own memory, on a block device
// that a second kernel's mount would destroy, or on top of another such directory.
func local() map[uint32]string {
	return map[uint32]string{
		unix.EXT4_SUPER_MAGIC:      "ext4", // ext2 and ext3 as well
		unix.XFS_SUPER_MAGIC:       "xfs",
		unix.BTRFS_SUPER_MAGIC:     "btrfs",
		0x2fc12fc1:                 "zfs",
		unix.F2FS_SUPER_MAGIC:      "f2fs",
		0xca451a4e:                 "bcachefs",
		0x3153464a:                 "jfs",
		unix.REISERFS_SUPER_MAGIC:  "reiserfs",
		unix.NILFS_SUPER_MAGIC:     "nilfs2",
		unix.TMPFS_MAGIC:           "tmpfs",
		unix.RAMFS_MAGIC:           "ramfs",
		unix.OVERLAYFS_SUPER_MAGIC: "overlayfs",
		unix.MSDOS_SUPER_MAGIC:     "vfat",
		unix.EXFAT_SUPER_MAGIC:     "exfat",
		0x7366746e:                 "ntfs3",
		0x4244:                     "hfs",
		0x482b:                     "hfsplus",
		0x42535041:                 "apfs",
		unix.UDF_SUPER_MAGIC:       "udf",
		unix.MINIX3_SUPER_MAGIC:    "minix",
		0x24051905:                 "ubifs",
		0x72b6:                     "jffs2",
	}
}

// shared names kinds that others may have too, where the list of mounts does not tell.
func shared() map[uint32]string {
	return map[uint32]string{
		unix.FUSE_SUPER_MAGIC:  "fuse",
		unix.V9FS_MAGIC:        "9p",
		unix.NFS_SUPER_MAGIC:   "nfs",
		unix.SMB_SUPER_MAGIC:   "smb",
		unix.SMB2_SUPER_MAGIC:  "smb",
		unix.CIFS_SUPER_MAGIC:  "cifs",
		unix.AFS_SUPER_MAGIC:   "afs",
		unix.AFS_FS_MAGIC:      "afs",
		unix.CODA_SUPER_MAGIC:  "coda",
		unix.CEPH_SUPER_MAGIC:  "ceph",
		unix.OCFS2_SUPER_MAGIC: "ocfs2",
		0x01161970:             "gfs2",
		0x0bd00bd0:             "lustre",
		0x47504653:             "gpfs",
		0x19830326:             "beegfs",
		0x786f4256:             "vboxsf",
		0xbacbacbc:             "vmhgfs",
	}
}

// mounted returns what the list of mounts says of path, or nothing: statfs(2) has one
// number for all of FUSE, from sshfs to virtiofs.
func mounted(path string) string {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_MNT_ID, &st); err != nil || st.Mask&unix.STATX_MNT_ID == 0 {
		return ""
	}
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }() // nothing was written
	id := strconv.FormatUint(st.Mnt_id, 10)
	for sc := bufio.NewScanner(file); sc.Scan(); {
		// proc_pid_mountinfo(5): the kind follows a lone dash.
		mount, kind, ok := strings.Cut(sc.Text(), " - ")
		if ok && strings.HasPrefix(mount, id+" ") {
			name, _, _ := strings.Cut(kind, " ")
			return name
		}
	}
	return ""
}
