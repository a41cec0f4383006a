package filekv

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// removeFile removes a file that others may remove at the same time.
func removeFile(path string) error {
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// writeFile creates a file. The umask has no say in its mode.
func writeFile(path string, text []byte, mode fs.FileMode, durable bool) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err == nil {
		err = file.Chmod(mode)
	}
	if err == nil && durable {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// readSome reads a file up to maxPage.
func readSome(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(file, maxPage))
	return text, errors.Join(err, file.Close())
}
