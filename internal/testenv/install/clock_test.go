package install

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestClockIsCompiledOnceIntoTheCache(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("it works on Linux only")
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	path, err := Clock(t.Context())
	require.NoError(t, err)
	cache, err := cacheDir()
	require.NoError(t, err)
	require.Equal(t, []string{"binary"}, kinds(t, cache), "nothing but the library is left")

	t.Setenv("CC", "true") // compiles nothing
	again, err := Clock(t.Context())
	require.NoError(t, err)
	require.Equal(t, path, again)
}

func TestMissingCompilerIsAnErrorThatSaysWhatToInstall(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("it works on Linux only")
	}
	t.Setenv("CC", "no-such-compiler")
	_, err := Clock(t.Context())
	require.ErrorIs(t, err, ErrNoCompiler)
	require.ErrorContains(t, err, "apt-get install gcc")
}
