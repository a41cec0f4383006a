package filekv_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	filekv "github.com/electkv/election/backends/file"
	"github.com/electkv/election/kv"
)

// /proc is of a kind that is not known to be local, and at hand everywhere.
func TestAFileSystemThatIsNotKnownToBeLocalIsRefused(t *testing.T) {
	_, err := filekv.New("/proc/self", nil)
	require.ErrorContains(t, err, "a file system of the kind proc")
	require.ErrorContains(t, err, "Options.AnyFileSystem")
	require.ErrorContains(t, err, "filesystem=any")
	_, err = filekv.New("/proc/self", &filekv.Options{ReadOnly: true})
	require.ErrorContains(t, err, "a file system of the kind proc")
	_, err = filekv.New("/proc/self", &filekv.Options{AnyFileSystem: true})
	require.Error(t, err)
	require.NotContains(t, err.Error(), "AnyFileSystem", "who insists is heard")
}

func reading(t testing.TB, dir string) *filekv.Store {
	t.Helper()
	s, err := filekv.New(dir, &filekv.Options{ReadOnly: true})
	require.NoError(t, err)
	return s
}

func TestAReaderCreatesNothingAndSeesWhatComes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	r := reading(t, dir)
	_, err := r.Get(t.Context(), "n")
	require.ErrorIs(t, err, kv.ErrVacant)
	require.NoDirExists(t, dir)

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var s *filekv.Store
	var rec kv.Record
	states := 0
	for got, err := range r.Watch(ctx, "n") {
		states++
		switch states {
		case 1:
			require.ErrorIs(t, err, kv.ErrVacant)
			require.NoDirExists(t, dir)
			s = open(t, dir)
			rec, err = s.Create(t.Context(), "n", signed(ample))
			require.NoError(t, err)
			continue
		case 2:
			require.NoError(t, err)
			require.Equal(t, rec, got)
			require.NoError(t, s.Delete(t.Context(), "n", rec))
			continue
		}
		require.ErrorIs(t, err, kv.ErrVacant)
		break
	}
	require.Equal(t, 3, states)
}

func TestAReaderRefusesToWrite(t *testing.T) {
	dir := t.TempDir()
	s, r := open(t, dir), reading(t, dir)
	rec, err := s.Create(t.Context(), "n", signed(ample))
	require.NoError(t, err)
	_, err = r.Create(t.Context(), "m", signed(ample))
	require.ErrorIs(t, err, kv.ErrInvalid)
	require.ErrorContains(t, err, "reading")
	_, err = r.Refresh(t.Context(), "n", rec)
	require.ErrorIs(t, err, kv.ErrInvalid)
	_, err = r.Swap(t.Context(), "n", rec, rec)
	require.ErrorIs(t, err, kv.ErrInvalid)
	require.ErrorIs(t, r.Delete(t.Context(), "n", rec), kv.ErrInvalid)
}

// Another user may list the directory and read it, and write nothing.
func TestAReaderNeedsNoPermissionToWrite(t *testing.T) {
	dir, err := os.MkdirTemp("", "filekv") //nolint:usetesting // t.TempDir is in a folder that nobody else may enter
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o755))
	s := open(t, dir)
	rec, err := s.Create(t.Context(), "n", signed(10*time.Minute))
	require.NoError(t, err)
	reader := start(t, command(t, "read", dir, "n", ample))
	require.Equal(t, rec.Signature, reader.says("held by"))
	require.NoError(t, s.Delete(t.Context(), "n", rec))
	reader.says("vacant")
}
