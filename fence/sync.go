//go:build !windows

package fence

import (
	"errors"
	"os"
)

// syncDir makes the names of a folder's files survive a power cut.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
