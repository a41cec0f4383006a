package fence_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/fence"
	"github.com/electkv/election/internal/testenv"
)

func TestATokenThatCannotBeKeptIsNotAdmitted(t *testing.T) {
	for what, trouble := range map[string]struct{ begin, end func(*testenv.Disk) }{
		"full":      {(*testenv.Disk).Fill, (*testenv.Disk).Free},
		"read-only": {(*testenv.Disk).ReadOnly, (*testenv.Disk).Writable},
	} {
		t.Run(what, func(t *testing.T) {
			disk := testenv.SmallDisk(t, 1<<20)
			path := filepath.Join(disk.Path(), "fence")
			f := reopen(t, path)
			require.NoError(t, f.Admit(3))

			trouble.begin(disk)
			ran, err := write(f, 4)
			require.ErrorContains(t, err, "token 4 is not admitted, as it cannot be kept: ")
			require.NotErrorIs(t, err, fence.ErrStale)
			require.False(t, ran)
			require.Error(t, f.Admit(5))
			require.EqualValues(t, 3, f.Largest())
			require.NoError(t, f.Do(3, nothing), "the term that was admitted goes on")
			require.ErrorIs(t, f.Do(2, nothing), fence.ErrStale)

			trouble.end(disk)
			require.NoError(t, f.Do(4, nothing), "it tries again")
			require.NoError(t, f.Close())
			require.EqualValues(t, 4, kept(t, path))
			require.Equal(t, "fence fence.lock", list(t, disk.Path()))
		})
	}
}

func TestAFullDiskIsFoundOutWhenTheFenceIsOpened(t *testing.T) {
	disk := testenv.SmallDisk(t, 1<<20)
	path := filepath.Join(disk.Path(), "fence")
	require.NoError(t, reopen(t, path).Close())
	disk.Fill()
	_, err := fence.Open(path)
	require.Error(t, err)
	disk.Free()
	require.Zero(t, kept(t, path))
}
