package filekv_test

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	filekv "github.com/electkv/election/backends/file"
)

func open(t testing.TB, dir string) *filekv.Store {
	t.Helper()
	s, err := filekv.New(dir, nil)
	require.NoError(t, err)
	return s
}

// put leaves a file where the safe is, as somebody does who does not know about
// folders and pages.
func put(t testing.TB, dir, name, value string) {
	t.Helper()
	path, temp := folderOf(t, dir, name), filepath.Join(t.TempDir(), rand.Text())
	require.NoError(t, os.WriteFile(temp, []byte(value), 0o600))
	err := unix.Renameat2(unix.AT_FDCWD, temp, unix.AT_FDCWD, path, unix.RENAME_EXCHANGE)
	if errors.Is(err, fs.ErrNotExist) {
		err = os.Rename(temp, path)
	}
	require.NoError(t, err)
}

func folderOf(t testing.TB, dir, name string) string {
	t.Helper()
	return open(t, dir).Folder(name)
}
