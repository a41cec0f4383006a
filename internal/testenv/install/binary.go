// Package install gets hold of the servers that the tests run.
//
// etcd, etcdctl and Consul are built from the modules in test/servers, which pin
// their versions, into the user's cache: one build per version and machine. The other servers
// are the system's own, or are unpacked from its packages.
package install

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// A Binary is a server, or a program that comes with one, that is built from
// source.
type Binary struct {
	name   string // the program's name
	folder string // of the module that pins it, in test/servers
	module string // the module whose version is the program's
	main   string // the package that is built
}

// What tests build. The program consul is the server and the client.
var (
	Etcd    = Binary{"etcd", "etcd", "go.etcd.io/etcd/server/v3", "go.etcd.io/etcd/server/v3"}
	Etcdctl = Binary{"etcdctl", "etcd", "go.etcd.io/etcd/etcdctl/v3", "go.etcd.io/etcd/etcdctl/v3"}
	Consul  = Binary{"consul", "consul", "github.com/hashicorp/consul", "github.com/hashicorp/consul"}
)

// Built returns where the executable is, or would be built, and whether it is there.
func (b Binary) Built() (path string, ok bool, err error) {
	src, err := b.source()
	if err != nil {
		return "", false, err
	}
	version, err := moduleVersion(filepath.Join(src, "go.mod"), b.module)
	if err != nil {
		return "", false, err
	}
	cache, err := cacheDir()
	if err != nil {
		return "", false, err
	}
	path = filepath.Join(cache, fmt.Sprintf("%s-%s-%s-%s", b.name, version, runtime.GOOS, runtime.GOARCH))
	return path, isExecutable(path), nil
}

// Path returns the path of the executable, which it builds first if the cache
// lacks it. The build's progress goes to log. Any number of processes
// may ask at once: one builds, the others wait for it until ctx ends.
func (b Binary) Path(ctx context.Context, log io.Writer) (string, error) {
	path, ok, err := b.Built()
	if ok || err != nil {
		return path, err
	}
	src, err := b.source()
	if err != nil {
		return "", err
	}

	unlock, err := lock(ctx, path+".lock")
	if err != nil {
		return "", fmt.Errorf("install: wait for another build of %s: %w", b.name, err)
	}
	defer unlock()
	if isExecutable(path) {
		return path, nil
	}
	if err := b.build(ctx, src, path, log); err != nil {
		return "", fmt.Errorf("install: build %s: %w", filepath.Base(path), err)
	}
	return path, nil
}

// build puts the executable at path in one step, so that nobody ever runs half
// a file. The caller holds the lock of path.
func (b Binary) build(ctx context.Context, src, path string, log io.Writer) error {
	removeStale(path)
	tmp, err := os.MkdirTemp(filepath.Dir(path), filepath.Base(path)+".build-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)

	fmt.Fprintf(log, "building %s (once, a few minutes)\n", filepath.Base(path))
	defer every(still, func(took time.Duration) { fmt.Fprintf(log, "still building %s (%v)\n", filepath.Base(path), took) })()
	out := filepath.Join(tmp, b.name)
	cmd := exec.CommandContext(ctx, "go", "build", "-mod=readonly", "-ldflags=-s -w", "-o", out, b.main)
	cmd.Dir = src
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go build %s: %w", b.main, err)
	}
	return os.Rename(out, path)
}

// removeStale clears away what builds left behind that were killed.
func removeStale(path string) {
	left, _ := filepath.Glob(path + ".build-*")
	for _, dir := range left {
		os.RemoveAll(dir)
	}
}

// source returns the folder of the module that pins the program.
func (b Binary) source() (string, error) {
	starts := make([]string, 0, 2)
	if wd, err := os.Getwd(); err == nil {
		starts = append(starts, wd)
	}
	if _, file, _, ok := runtime.Caller(0); ok {
		starts = append(starts, filepath.Dir(file))
	}
	for _, dir := range starts {
		for {
			src := filepath.Join(dir, "test", "servers", b.folder)
			if _, err := os.Stat(filepath.Join(src, "go.mod")); err == nil {
				return src, nil
			}
			parent := filepath.Dir(dir)
			if parent == dir {
				break
			}
			dir = parent
		}
	}
	return "", fmt.Errorf("install: test/servers/%s is not above %s", b.folder, strings.Join(starts, " or "))
}

// moduleVersion reads the version of a required module from a go.mod.
func moduleVersion(gomod, module string) (string, error) {
	text, err := os.ReadFile(gomod)
	if err != nil {
		return "", fmt.Errorf("install: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(fields) >= 2 && fields[0] == module {
			return fields[1], nil
		}
	}
	return "", fmt.Errorf("install: %s does not require %s", gomod, module)
}

// cacheDir returns the folder of the built servers, and makes it.
func cacheDir() (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("install: %w", err)
	}
	dir := filepath.Join(base, "election-test")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("install: %w", err)
	}
	return dir, nil
}

func isExecutable(path string) bool {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err != nil {
		return false
	}
	return info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}
