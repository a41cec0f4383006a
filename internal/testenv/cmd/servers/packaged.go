package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/electkv/election/internal/testenv/install"
)

// A packaged server is the system's own.
type packaged struct {
	find      func() (string, error)
	packages  []string // that have it, in Debian
	variable  string   // names one that runs already
	container *install.Container
}

// servers returns what is needed of the system. MariaDB's server is in a package
// without what would make it one of the machine's services.
func servers() []packaged {
	mariadb := func() (string, error) {
		path, _, err := install.MariaDB()
		return path, err
	}
	return []packaged{
		{install.Redis, []string{"redis-server"}, "ELECTION_TEST_REDIS", &install.RedisContainer},
		{install.Postgres, []string{"postgresql"}, "ELECTION_TEST_POSTGRES", &install.PostgresContainer},
		{mariadb, []string{"mariadb-server-core", "mariadb-client-core"}, "ELECTION_TEST_MYSQL", &install.MariaDBContainer},
		{install.PgBouncer, []string{"pgbouncer"}, "", nil},
		{install.Prometheus, []string{"prometheus"}, "", nil},
	}
}

// announce says what will be built and installed, if anything.
func announce(log io.Writer, binaries []install.Binary) error {
	var plan []string
	for _, binary := range binaries {
		path, ok, err := binary.Built()
		if err != nil {
			return err
		}
		if !ok {
			plan = append(plan, "build "+path+", from source (a few minutes, once)")
		}
	}
	if _, packages := look(io.Discard, servers()); len(packages) > 0 && install.HasPackages() {
		dir, err := install.PackagesDir()
		if err != nil {
			return err
		}
		plan = append(plan, "download and unpack into "+dir+": "+strings.Join(packages, " ")+" (nothing is installed)")
	}
	if browserMissing() && install.HasPackages() {
		plan = append(plan, "download and unpack "+browserPackage+", likewise (200 MB)")
	}
	if tools := missingTools(io.Discard); len(tools) > 0 {
		plan = append(plan, "install with apt-get, as root: "+strings.Join(tools, " ")+" (for networks and disks of the tests' own)")
	}
	if len(plan) > 0 {
		fmt.Fprintf(log, "The tests run real servers, and some are missing here. This will\n  - %s\n", strings.Join(plan, "\n  - "))
	}
	return nil
}

// providePackaged gets what is not built: the servers, and what only root can use.
func providePackaged(ctx context.Context, out, log io.Writer) error {
	missing, packages := look(log, servers())
	if len(packages) > 0 && install.HasPackages() {
		if err := install.Unpack(ctx, log, packages...); err != nil {
			fmt.Fprintln(log, err)
		}
		missing, _ = look(log, missing)
	}
	provideBrowser(ctx, log)
	if tools := missingTools(log); len(tools) > 0 {
		if err := install.FetchPackages(ctx, log, tools...); err != nil {
			return err
		}
	}
	return contain(ctx, out, log, missing)
}

// look returns the servers that are missing, and the packages that have them.
func look(log io.Writer, all []packaged) (missing []packaged, packages []string) {
	for _, s := range all {
		path, err := s.find()
		switch {
		case err == nil:
			fmt.Fprintln(log, "found", path)
		case s.variable != "" && os.Getenv(s.variable) != "":
			fmt.Fprintln(log, "using the server at", s.variable)
		default:
			missing = append(missing, s)
			packages = append(packages, s.packages...)
		}
	}
	return missing, packages
}

// browserPackage has a Chromium without a window, in Debian. Ubuntu has none that can be unpacked.
const browserPackage = "chromium-headless-shell"

func browserMissing() bool {
	_, err := install.Chromium()
	return err != nil
}

// provideBrowser gets a browser. Without one, only the tests of pages fail.
func provideBrowser(ctx context.Context, log io.Writer) {
	if browserMissing() && install.HasPackages() {
		if err := install.Unpack(ctx, log, browserPackage); err != nil {
			fmt.Fprintln(log, err)
		}
	}
	path, err := install.Chromium()
	if err != nil {
		fmt.Fprintln(log, "tests of pages will fail:", err)
		return
	}
	fmt.Fprintln(log, "found", path)
}

// contain runs in containers what is missing, and tells of all that it cannot.
// What no container stands in for fails the tests that need it, and them alone.
func contain(ctx context.Context, out, log io.Writer, missing []packaged) error {
	var errs []error
	docker := len(missing) > 0 && install.HasDocker(ctx)
	for _, s := range missing {
		_, err := s.find()
		switch {
		case !docker:
			errs = append(errs, err)
		case s.container == nil:
			fmt.Fprintln(log, "tests will fail:", err)
		default:
			addr, err := s.container.Run(ctx, log)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			fmt.Fprintf(out, "export %s=%s\n", s.variable, addr)
		}
	}
	return errors.Join(errs...)
}

// missingTools returns the packages of what only root can use. Where they cannot
// be got, the tests that need them say so.
func missingTools(log io.Writer) []string {
	missing := install.MissingTools()
	switch {
	case runtime.GOOS != "linux" || os.Geteuid() != 0:
		fmt.Fprintln(log, "not root on Linux: there will be no tests on networks and disks of their own")
		return nil
	case len(missing) == 0:
		fmt.Fprintln(log, "found what makes networks and disks")
	case !install.HasApt():
		fmt.Fprintln(log, "tests on networks and disks of their own will fail: install", strings.Join(missing, " "))
		return nil
	}
	return missing
}
