package peers

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// write puts text into a file in one step: whoever reads it meanwhile gets what was there
// before, and so it is after a loss of power.
func write(path string, text []byte, mode fs.FileMode) (err error) {
	next, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*") // for this user alone
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(next.Name())
		}
	}()
	_, err = next.Write(text)
	if err = errors.Join(err, next.Chmod(mode), next.Sync(), next.Close()); err != nil {
		return err
	}
	if err = os.Rename(next.Name(), path); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// syncFolder has the disk keep a folder's names.
func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
