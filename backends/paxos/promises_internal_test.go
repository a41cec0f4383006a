package paxoskv

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/backends/paxos/internal/lease"
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

func TestNoCounterMakesThePromisesGoBack(t *testing.T) {
	dir := t.TempDir()
	p, _, err := openPromises(dir)
	require.NoError(t, err)
	require.NoError(t, p.keep(5))
	before := p.kept
	for _, wild := range []uint64{lease.MaxCounter + 1, math.MaxUint64 - ahead + 1, math.MaxUint64} {
		require.ErrorContains(t, p.keep(wild), "is the largest")
		again, _, err := openPromises(dir)
		require.NoError(t, err)
		require.Equal(t, before, again.kept)
	}
	require.NoError(t, p.keep(lease.MaxCounter-ahead-1))
	again, _, err := openPromises(dir)
	require.NoError(t, err)
	require.EqualValues(t, lease.MaxCounter-1, again.kept)
	require.NoError(t, p.keep(again.kept+1))
	require.EqualValues(t, lease.MaxCounter, p.kept)
}

func TestPromisesOutOfBoundsAreRefusedWithTheWayToMendThem(t *testing.T) {
	dir := t.TempDir()
	for _, wild := range []uint64{lease.MaxCounter, lease.MaxCounter + 1, math.MaxUint64} {
		text := binary.BigEndian.AppendUint64([]byte(magic+"    "), wild)
		binary.BigEndian.PutUint32(text[4:], crc32.ChecksumIEEE(text[8:]))
		require.NoError(t, os.WriteFile(filepath.Join(dir, promisesFile), text, 0o600))
		_, _, err := openPromises(dir)
		require.ErrorContains(t, err, fmt.Sprint(wild))
		require.ErrorContains(t, err, filepath.Join(dir, promisesFile))
		require.ErrorContains(t, err, "rename this file")
	}
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
