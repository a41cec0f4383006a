// Command servers gets everything that the tests need a server of: it builds
// etcd, etcdctl and Consul into the user's cache, and sees that there is a Redis. For
// root, who may have hosts and disks of the test's own, it also sees that there
// are the commands that make them. It is quick where nothing is missing.
//
// Redis is taken from PATH. Where it is missing, it is installed with apt-get
// (as root), or run in a container (where a docker engine answers); if neither
// can be, the command says what to install and fails. Standard output holds
// nothing but shell assignments for the tests' environment:
//
//	env=$(go run ./internal/testenv/cmd/servers) && eval "$env" && go test ./...
//
// A server named by ELECTION_TEST_ETCD, ELECTION_TEST_CONSUL or
// ELECTION_TEST_REDIS takes the place of the shared one only; tests that stop
// and restart a server run their own, so the executables are needed all the
// same. With Redis in a container only, those tests fail and say so.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"github.com/electkv/election/internal/testenv/install"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := provide(ctx, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "servers:", err)
		os.Exit(1)
	}
}

// provide gets the servers. It writes assignments to out and progress to log.
func provide(ctx context.Context, out, log io.Writer) error {
	for _, binary := range []install.Binary{install.Etcd, install.Etcdctl, install.Consul} {
		path, err := binary.Path(ctx, log)
		if err != nil {
			return err
		}
		fmt.Fprintln(log, "found", path)
	}
	if err := provideTools(ctx, log); err != nil {
		return err
	}
	return provideRedis(ctx, out, log)
}

// provideTools gets what only root can use. Where that is missing and cannot be
// got, the tests that need it say so.
func provideTools(ctx context.Context, log io.Writer) error {
	missing := install.MissingTools()
	switch {
	case runtime.GOOS != "linux" || os.Geteuid() != 0:
		fmt.Fprintln(log, "not root on Linux: there will be no tests on networks and disks of their own")
	case len(missing) == 0:
		fmt.Fprintln(log, "found what makes networks and disks")
	case install.HasApt():
		return install.FetchPackages(ctx, log, missing...)
	default:
		fmt.Fprintln(log, "tests on networks and disks of their own will fail: install", strings.Join(missing, " "))
	}
	return nil
}

func provideRedis(ctx context.Context, out, log io.Writer) error {
	path, err := install.Redis()
	switch {
	case err == nil:
		fmt.Fprintln(log, "found", path)
		return nil
	case os.Getenv("ELECTION_TEST_REDIS") != "":
		fmt.Fprintln(log, "using the Redis at ELECTION_TEST_REDIS")
		return nil
	case install.HasApt():
		return install.FetchPackages(ctx, log, "redis-server")
	case install.HasDocker(ctx):
		addr, err := install.RunRedis(ctx, log)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "export ELECTION_TEST_REDIS=%s\n", addr)
		return nil
	}
	return err
}
