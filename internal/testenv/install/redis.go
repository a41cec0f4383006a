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

// ErrNoRedis means that this machine has no redis-server. Its text says how to
// come by one.
var ErrNoRedis = errors.New("redis-server is not in PATH: install it " +
	"(Debian, Ubuntu: apt-get install redis-server; Fedora: dnf install redis; macOS: brew install redis) " +
	"or set ELECTION_TEST_REDIS=host:port to a server that runs")

// Redis returns the path of redis-server, or ErrNoRedis.
func Redis() (string, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return "", ErrNoRedis
	}
	return path, nil
}

// HasApt reports whether FetchPackages can work here: for root, where there is
// apt-get.
func HasApt() bool {
	_, err := exec.LookPath("apt-get")
	return err == nil && os.Geteuid() == 0
}

// FetchPackages installs packages with apt-get. Services that belong to them,
// the distribution's own Redis for one, are not started.
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

// container is the name of the container that RunRedis starts, and image what
// it runs.
const (
	container = "election-test-redis"
	image     = "redis:7.4-alpine"
)

// HasDocker reports whether a docker engine answers.
func HasDocker(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return exec.CommandContext(ctx, "docker", "info").Run() == nil
}

// RunRedis starts Redis in a container, unless it runs already, and returns its
// address as host:port. The container stays, for the next run;
// "docker rm -f election-test-redis" ends it.
func RunRedis(ctx context.Context, log io.Writer) (string, error) {
	if addr, err := containerAddr(ctx); err == nil {
		return addr, nil
	}
	if err := run(ctx, log, "docker", "run", "--detach", "--rm", "--name", container,
		"--publish", "127.0.0.1::6379", image, "redis-server", "--save", ""); err != nil {
		return "", fmt.Errorf("install: redis in docker: %w", err)
	}
	addr, err := containerAddr(ctx)
	if err != nil {
		return "", fmt.Errorf("install: redis in docker: %w", err)
	}
	return addr, nil
}

// containerAddr returns the address under which the container is to be reached.
func containerAddr(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "docker", "port", container, "6379/tcp").Output()
	if err != nil {
		return "", fmt.Errorf("docker port %s: %w", container, err)
	}
	addr, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if addr == "" {
		return "", fmt.Errorf("docker port %s: no port is published", container)
	}
	return addr, nil
}

// run carries out a command that must not ask anything.
func run(ctx context.Context, log io.Writer, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 20 * time.Second
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return nil
}
