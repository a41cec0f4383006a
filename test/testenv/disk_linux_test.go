package testenv_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv"
)

func disk(t *testing.T) *testenv.Disk { return testenv.SmallDisk(t, 8<<20) }

func TestFullDiskTakesNothingUntilItIsFreed(t *testing.T) {
	t.Parallel()
	d := disk(t)
	file := filepath.Join(d.Path(), "file")
	require.NoError(t, os.WriteFile(file, []byte("fits"), 0o600))
	require.ErrorIs(t, os.WriteFile(file+"2", make([]byte, 9<<20), 0o600), syscall.ENOSPC)
	require.NoError(t, os.Remove(file+"2"))
	d.Fill()
	d.Fill()
	require.ErrorIs(t, os.WriteFile(file+"2", make([]byte, 1<<16), 0o600), syscall.ENOSPC)
	// A process that another test is starting has the file open until it runs.
	held, err := os.Open(filepath.Join(d.Path(), ".filling"))
	require.NoError(t, err)
	defer held.Close()
	d.Free()
	require.Eventually(t, func() bool { // each processor counts its pages for itself, and tells of them later
		return os.WriteFile(file+"2", make([]byte, 1<<16), 0o600) == nil
	}, 10*time.Second, time.Millisecond)
}

func TestReadOnlyDiskTakesNothingUntilItIsWritable(t *testing.T) {
	t.Parallel()
	d := disk(t)
	file := filepath.Join(d.Path(), "file")
	f, err := os.Create(file)
	require.NoError(t, err)
	time.AfterFunc(silence, func() { f.Close() })

	d.ReadOnly()
	require.ErrorIs(t, f.Sync(), os.ErrClosed, "it waits until nobody writes")
	require.ErrorIs(t, os.WriteFile(file, nil, 0o600), syscall.EROFS)
	d.Writable()
	require.NoError(t, os.WriteFile(file, nil, 0o600))
}

func TestRedisOnAFullDiskRefusesWritesUntilItIsFreed(t *testing.T) {
	t.Parallel()
	d := disk(t)
	server := testenv.StartRedis(t, "--dir", d.Path()) // one that syncs always ends
	client := redisClient(t, server.Addr())
	require.NoError(t, client.Set(within(t), "k", "v", 0).Err())
	d.Fill()
	require.Eventually(t, func() bool {
		return client.Set(within(t), "k", make([]byte, 1<<14), 0).Err() != nil
	}, 10*time.Second, 10*time.Millisecond)
	d.Free()
	require.Eventually(t, func() bool {
		return client.Set(within(t), "k", "again", 0).Err() == nil
	}, 30*time.Second, 100*time.Millisecond)
}
