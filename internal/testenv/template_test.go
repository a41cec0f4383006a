//go:build unix

package testenv

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// script writes a program that does what the lines say.
func script(t *testing.T, lines string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "program")
	require.NoError(t, os.WriteFile(file, []byte("#!/bin/sh\n"+lines+"\n"), 0o755))
	return file
}

// TestAProgramThatDoesNotTellItsVersionIsHeardOut has one that says what is wrong to
// standard error.
func TestAProgramThatDoesNotTellItsVersionIsHeardOut(t *testing.T) {
	asked := template{server: script(t, `echo "broken settings, asked for $*" >&2; exit 1`), asks: []string{noDefaults, "--version"}}
	err := asked.copyTo(filepath.Join(t.TempDir(), "data"))
	require.ErrorContains(t, err, "broken settings, asked for --no-defaults --version")

	asked = template{server: script(t, "echo 1"), setup: script(t, `echo "no space" >&2; exit 1`)}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir()) // where there is no XDG: see os.UserCacheDir
	require.ErrorContains(t, asked.copyTo(filepath.Join(t.TempDir(), "data")), "no space")
}

// TestMariaDBReadsNoSettingsOfTheMachines has every program of it be told so first,
// which is where it is heard.
func TestMariaDBReadsNoSettingsOfTheMachines(t *testing.T) {
	s, err := newMariaDB("--read-only")
	require.NoError(t, err)
	s.own(t)
	require.Equal(t, noDefaults, s.args[0])
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	home := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(home, ".my.cnf"), []byte("[mysqld\nbroken\n"), 0o644))
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("HOME", home)
	require.NoError(t, s.seed(filepath.Join(s.dir, "data")), "broken settings are not read")
}
