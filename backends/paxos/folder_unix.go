//go:build unix

package paxoskv

import (
	"errors"
	"os"
)

// syncFolder has the disk keep a folder's names.
func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
