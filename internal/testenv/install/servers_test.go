package install

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// What PATH names may be a link to a folder that has the rest.
func TestPostgresIsWhereItsOtherProgramsAre(t *testing.T) {
	real, path := t.TempDir(), t.TempDir()
	for _, name := range []string{"postgres", "initdb", "pg_basebackup"} {
		write(t, filepath.Join(real, name), "")
		require.NoError(t, os.Chmod(filepath.Join(real, name), 0o755))
	}
	require.NoError(t, os.Symlink(filepath.Join(real, "postgres"), filepath.Join(path, "postgres")))
	t.Setenv("PATH", path)
	found, err := Postgres()
	require.NoError(t, err)
	want, err := filepath.EvalSymlinks(filepath.Join(real, "postgres"))
	require.NoError(t, err)
	require.Equal(t, want, found)

	require.NoError(t, os.Remove(filepath.Join(real, "initdb")))
	found, err = Postgres()
	require.NotEqual(t, want, found, "it can set nothing up")
	if err != nil {
		require.ErrorIs(t, err, ErrNoPostgres)
	}
}

func TestNewestPackageIsTakenFirst(t *testing.T) {
	dir := t.TempDir()
	for _, version := range []string{"9", "15", "17"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, version, "bin"), 0o755))
	}
	require.Equal(t, 15, versionIn("/usr/lib/postgresql/15/bin/postgres"))
	require.Zero(t, versionIn("/usr/lib/postgres"))

	t.Chdir(dir)
	require.Equal(t, []string{"17/bin", "15/bin", "9/bin"}, packaged("*/bin"))
}

func TestProgramOfRootIsFoundBesidePath(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", t.TempDir())
	missing := errors.New("missing")
	_, err := lookFor(missing, "serverd", dir)
	require.ErrorIs(t, err, missing)
	write(t, filepath.Join(dir, "serverd"), "")
	_, err = lookFor(missing, "serverd", dir)
	require.ErrorIs(t, err, missing, "nobody may run it")
	require.NoError(t, os.Chmod(filepath.Join(dir, "serverd"), 0o755))
	path, err := lookFor(missing, "serverd", dir)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "serverd"), path)
}

func TestTemplateIsFilledOnceAndNeverHalf(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", os.Getenv("XDG_CACHE_HOME"))
	broken := errors.New("broken")
	_, err := Template(t.Context(), "data", func(dir string) error {
		write(t, filepath.Join(dir, "half"), "")
		return broken
	})
	require.ErrorIs(t, err, broken)

	var fills int
	fill := func(dir string) error {
		fills++
		write(t, filepath.Join(dir, "whole"), "")
		return nil
	}
	for range 2 {
		path, err := Template(t.Context(), "data", fill)
		require.NoError(t, err)
		require.FileExists(t, filepath.Join(path, "whole"))
		require.NoFileExists(t, filepath.Join(path, "half"))
	}
	require.Equal(t, 1, fills)
}
