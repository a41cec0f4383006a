package install

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"time"
)

// HasApt reports whether FetchPackages can work here: for root, where there is
// apt-get.
func HasApt() bool {
	_, err := exec.LookPath("apt-get")
	return err == nil && os.Geteuid() == 0
}

// FetchPackages installs packages with apt-get. Services that belong to them are not started.
func FetchPackages(ctx context.Context, log io.Writer, packages ...string) error {
	allow, err := forbidServices()
	if err != nil {
		return fmt.Errorf("install: %w", err)
	}
	defer allow()
	for _, args := range [][]string{
		{"update", "-q"},
		append([]string{"install", "-q", "-y", "--no-install-recommends"}, packages...),
	} {
		if err := run(ctx, log, "apt-get", args...); err != nil {
			return fmt.Errorf("install: %w", err)
		}
	}
	return nil
}

// policy is where Debian's packages ask whether they may start a service, and
// its answer 101 means no.
const policy = "/usr/sbin/policy-rc.d"

// forbidServices keeps packages from starting services until the function that
// it returns is called. A machine that has a policy keeps its own.
func forbidServices() (func(), error) {
	f, err := os.OpenFile(policy, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if errors.Is(err, fs.ErrExist) {
		return func() {}, nil
	}
	if err != nil {
		return nil, err
	}
	allow := func() { os.Remove(policy) }
	_, err = io.WriteString(f, "#!/bin/sh\nexit 101\n")
	if err := errors.Join(err, f.Close()); err != nil {
		allow()
		return nil, err
	}
	return allow, nil
}

// run carries out a command that must not ask anything.
func run(ctx context.Context, log io.Writer, name string, args ...string) error {
	return runIn(ctx, "", log, name, args...)
}

// runIn carries it out in a folder.
func runIn(ctx context.Context, dir string, log io.Writer, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 20 * time.Second
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return nil
}
