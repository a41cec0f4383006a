// Command servers gets everything that the tests need a server of: it builds
// etcd, etcdctl and Consul into the user's cache, and sees that there are Redis,
// PostgreSQL, MariaDB, PgBouncer and Prometheus. For root, who may have hosts and disks of
// the test's own, it also sees that there are the commands that make them. It is
// quick where nothing is missing, and else says first what it will build and install.
//
// It also looks for a Chromium, and does without if none can be had: then the tests of
// pages fail, and say so.
//
// What it does not build it takes from PATH, or from where packages put servers.
// What is missing it downloads with apt-get and unpacks into a folder of its own, or runs
// in a container (where a docker engine answers; PgBouncer and Prometheus are not). If
// neither can be, the command says what to install and fails. It installs nothing, but for
// root the commands that make networks and disks. Standard output holds nothing but shell
// assignments for the tests' environment:
//
//	env=$(go run ./internal/testenv/cmd/servers) && eval "$env" && go test ./...
//
// A server named by ELECTION_TEST_ETCD, ELECTION_TEST_CONSUL,
// ELECTION_TEST_REDIS, ELECTION_TEST_POSTGRES or ELECTION_TEST_MYSQL takes the
// place of the shared one only; tests that stop and restart a server run their
// own, so the executables are needed all the same. With a server in a container
// only, those tests fail and say so.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
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
	binaries := []install.Binary{install.Etcd, install.Etcdctl, install.Consul}
	if err := announce(log, binaries); err != nil {
		return err
	}
	for _, binary := range binaries {
		path, err := binary.Path(ctx, log)
		if err != nil {
			return err
		}
		fmt.Fprintln(log, "found", path)
	}
	return providePackaged(ctx, out, log)
}
