//go:build linux || darwin

package filekv

import (
	"errors"
	"os"
)

// queueFile returns what writers lock to queue up at a folder: the folder. It
// cannot be unlinked, as long as it has pages.
func queueFile(folder string) (path string, flag int) { return folder, os.O_RDONLY }

// syncDir makes the entries of a folder survive a crash of the host.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
