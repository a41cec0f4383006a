package paxoskv

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPromisesOutliveARestart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	p, used, err := openPromises(dir)
	require.NoError(t, err)
	require.False(t, used)
	require.NoError(t, p.keep(5))
	again, used, err := openPromises(dir)
	require.NoError(t, err)
	require.True(t, used)
	require.Equal(t, p.kept, again.kept)
	require.GreaterOrEqual(t, again.kept, uint64(5))

	before, err := os.Stat(p.path)
	require.NoError(t, err)
	require.NoError(t, p.keep(p.kept), "what the file covers costs no write")
	after, err := os.Stat(p.path)
	require.NoError(t, err)
	require.Equal(t, before.ModTime(), after.ModTime())
	require.True(t, os.SameFile(before, after))

	require.NoError(t, p.keep(p.kept+1))
	again, _, err = openPromises(dir)
	require.NoError(t, err)
	require.Equal(t, p.kept, again.kept)
}

func TestDamagedPromisesAreNoPromises(t *testing.T) {
	dir := t.TempDir()
	p, _, err := openPromises(dir)
	require.NoError(t, err)
	require.NoError(t, p.keep(1))
	whole, err := os.ReadFile(p.path)
	require.NoError(t, err)
	for i := range len(whole) + 1 {
		text := append([]byte{}, whole...)
		if i < len(whole) {
			text[i] ^= 4
		} else {
			text = text[:len(text)-1]
		}
		require.NoError(t, os.WriteFile(p.path, text, 0o600))
		_, _, err = openPromises(dir)
		require.ErrorContains(t, err, "damaged", "byte %d", i)
	}
}

func TestWhatCannotBeKeptIsNotPromised(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gone")
	p, _, err := openPromises(dir)
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(dir))
	require.Error(t, p.keep(7))
	require.Zero(t, p.kept)
}
