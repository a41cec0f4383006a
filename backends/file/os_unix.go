//go:build linux || darwin

package filekv

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

const (
	errNotEmpty = unix.ENOTEMPTY // a rename onto a folder that is not empty
	errNotDir   = unix.ENOTDIR   // an open as a folder of something else
	errLoop     = unix.ELOOP     // an open of a symbolic link
)

// feelFlag opens a life file, and does not wait for a writer if it is a pipe.
const feelFlag = os.O_RDONLY | unix.O_NONBLOCK

// queueFile returns what writers lock to queue up at a folder: the folder. It
// cannot be unlinked, as long as it has pages. Nothing else is opened, such as a
// pipe, which would wait for a writer.
func queueFile(folder string) (path string, flag int) {
	return folder, os.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW
}

// syncDir makes the entries of a folder survive a crash of the host.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
