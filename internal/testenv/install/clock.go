package install

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed" // for the clock's source
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

//go:embed clock/clock.c
var clockSource []byte

// ErrNoCompiler means that this machine has no C compiler. Its text says how to
// come by one.
var ErrNoCompiler = errors.New("there is no C compiler: install one " +
	"(Debian, Ubuntu: apt-get install gcc libc6-dev; Fedora: dnf install gcc) or name it in CC")

// Clock returns the path of a library that moves the wall clock of a program
// that is started with it as LD_PRELOAD: see clock/clock.c. It is compiled into
// the user's cache, once for each version of its source. It works on Linux.
func Clock(ctx context.Context) (string, error) {
	if runtime.GOOS != "linux" {
		return "", errors.New("install: a program's wall clock can be moved on Linux only")
	}
	compiler, err := exec.LookPath(cmp.Or(os.Getenv("CC"), "cc"))
	if err != nil {
		return "", ErrNoCompiler
	}
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	path := filepath.Join(cache, fmt.Sprintf("clock-%.8x-%s-%s.so", sha256.Sum256(clockSource), runtime.GOOS, runtime.GOARCH))
	if isExecutable(path) {
		return path, nil
	}
	// Whoever is done first provides it; the others put the same in its place.
	tmp, err := os.MkdirTemp(cache, "clock.build-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	out := filepath.Join(tmp, "clock.so")
	cmd := exec.CommandContext(ctx, compiler, "-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-x", "c", "-", "-o", out)
	cmd.Stdin = bytes.NewReader(clockSource)
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("install: compile the clock: %w\n%s", err, text)
	}
	return path, os.Rename(out, path)
}
