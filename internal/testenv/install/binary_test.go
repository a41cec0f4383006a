package install

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fake is a server that builds in no time.
var fake = Binary{name: "fake", folder: "fake", module: "example.com/server", main: "."}

// withSource puts the source of fake below a folder from which the test goes on,
// and the cache into another.
func withSource(t *testing.T, source string) string {
	root, cache := t.TempDir(), t.TempDir()
	src := filepath.Join(root, "test", "servers", "fake")
	require.NoError(t, os.MkdirAll(src, 0o755))
	write(t, filepath.Join(src, "go.mod"), "module example.com/fake\n\ngo 1.26\n\n"+
		"// require example.com/server v0.0.1\nrequire example.com/server v1.2.3 // indirect\n\n"+
		"replace example.com/server => ./server\n")
	require.NoError(t, os.MkdirAll(filepath.Join(src, "server"), 0o755))
	write(t, filepath.Join(src, "server", "go.mod"), "module example.com/server\n\ngo 1.26\n")
	write(t, filepath.Join(src, "main.go"), source)

	below := filepath.Join(root, "a", "b")
	require.NoError(t, os.MkdirAll(below, 0o755))
	t.Chdir(below)
	t.Setenv("GOCACHE", goEnv(t, "GOCACHE"))
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("HOME", cache) // where there is no XDG: see os.UserCacheDir
	dir, err := cacheDir()
	require.NoError(t, err)
	return dir
}

func TestManyAtATimeBuildOnce(t *testing.T) {
	cache := withSource(t, "package main\n\nfunc main() { println(\"built\") }\n")
	var log lockedBuilder
	paths := make([]string, 4)
	var wg sync.WaitGroup
	for i := range paths {
		wg.Go(func() {
			path, err := fake.Path(t.Context(), &log)
			if err != nil {
				t.Error(err)
			}
			paths[i] = path
		})
	}
	wg.Wait()
	require.Equal(t, 1, strings.Count(log.String(), "building fake-v1.2.3"), log.String())
	for _, path := range paths {
		require.Equal(t, paths[0], path)
		require.Equal(t, cache, filepath.Dir(path))
	}
	out, err := exec.Command(paths[0]).CombinedOutput()
	require.NoError(t, err)
	require.Equal(t, "built\n", string(out))
}

func TestFailedBuildTellsWhyAndLeavesNothingToRun(t *testing.T) {
	cache := withSource(t, "package main\n\nfunc main() { undefined() }\n")
	var log lockedBuilder
	_, err := fake.Path(t.Context(), &log)
	require.ErrorContains(t, err, "build fake-v1.2.3")
	require.Contains(t, log.String(), "undefined: undefined")
	require.Equal(t, []string{"lock"}, kinds(t, cache))
}

func TestBuildClearsAwayWhatAKilledOneLeft(t *testing.T) {
	cache := withSource(t, "package main\n\nfunc main() {}\n")
	path, err := fake.Path(t.Context(), &lockedBuilder{})
	require.NoError(t, err)
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Mkdir(path+".build-123", 0o755))
	write(t, filepath.Join(path+".build-123", "fake"), "half a file")

	_, err = fake.Path(t.Context(), &lockedBuilder{})
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"binary", "lock"}, kinds(t, cache))
}

func TestWaitForAnotherBuildEndsWithTheContext(t *testing.T) {
	withSource(t, "package main\n\nfunc main() {}\n")
	path, err := fake.Path(t.Context(), &lockedBuilder{})
	require.NoError(t, err)
	require.NoError(t, os.Remove(path))
	unlock, err := lock(t.Context(), path+".lock")
	require.NoError(t, err)
	defer unlock()

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = fake.Path(ctx, &lockedBuilder{})
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestVersionsArePinned(t *testing.T) {
	for _, b := range []Binary{Etcd, Etcdctl, Consul} {
		src, err := b.source()
		require.NoError(t, err)
		version, err := moduleVersion(filepath.Join(src, "go.mod"), b.module)
		require.NoError(t, err)
		require.Regexp(t, `^v\d+\.\d+\.\d+$`, version)
	}
	_, err := moduleVersion("../../../test/servers/etcd/go.mod", "example.com/absent")
	require.ErrorContains(t, err, "does not require example.com/absent")
}

// kinds tells what is in the cache.
func kinds(t *testing.T, cache string) []string {
	entries, err := os.ReadDir(cache)
	require.NoError(t, err)
	var found []string
	for _, e := range entries {
		switch {
		case strings.HasSuffix(e.Name(), ".lock"):
			found = append(found, "lock")
		case strings.Contains(e.Name(), ".build-"):
			found = append(found, "build")
		default:
			found = append(found, "binary")
		}
	}
	return found
}

func goEnv(t *testing.T, name string) string {
	out, err := exec.Command("go", "env", name).Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(out))
}

func write(t *testing.T, file, text string) {
	require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
}

// A lockedBuilder is a log that many may write to.
type lockedBuilder struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedBuilder) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuilder) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
