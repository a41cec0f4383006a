package install

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// HasPackages reports whether Unpack can work here: where there are apt-get and dpkg-deb,
// for anybody.
func HasPackages() bool {
	_, apt := exec.LookPath("apt-get")
	_, dpkg := exec.LookPath("dpkg-deb")
	return apt == nil && dpkg == nil
}

// PackagesDir returns the folder into which Unpack unpacks, which ELECTION_TEST_PACKAGES may
// name. For root it is one that others may read, since some servers refuse to run as root.
func PackagesDir() (string, error) {
	if dir := os.Getenv("ELECTION_TEST_PACKAGES"); dir != "" {
		return dir, nil
	}
	if os.Geteuid() == 0 {
		return "/var/cache/election-test", nil
	}
	cache, err := cacheDir()
	return filepath.Join(cache, "packages"), err
}

// Unpack downloads the distribution's packages, with all that they depend on and that is not
// installed, and unpacks them into a folder of the tests' own. It changes nothing else: no
// package is installed, and no service.
func Unpack(ctx context.Context, log io.Writer, packages ...string) error {
	dir, err := PackagesDir()
	if err != nil {
		return err
	}
	if err := unpack(ctx, log, dir, packages); err != nil {
		return fmt.Errorf("install: unpack %s: %w", strings.Join(packages, " "), err)
	}
	return nil
}

func unpack(ctx context.Context, log io.Writer, dir string, packages []string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	unlock, err := lock(ctx, dir+".lock")
	if err != nil {
		return err
	}
	defer unlock()
	apt := filepath.Join(dir, "apt")
	for _, folder := range []string{"lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(apt, folder), 0o755); err != nil {
			return err
		}
	}
	defer os.RemoveAll(apt)
	own := []string{"-q", "-o", "Dir::State::Lists=" + apt + "/lists", "-o", "Dir::Cache=" + apt + "/cache", "-o", "APT::Sandbox::User=", "-o", "Debug::NoLocking=1"}
	if err := run(ctx, log, "apt-get", append(own, "update")...); err != nil {
		return err
	}
	var plan bytes.Buffer
	if err := run(ctx, &plan, "apt-get", append(append(own, "--simulate", "install", "--no-install-recommends"), packages...)...); err != nil {
		return errors.Join(err, errors.New(plan.String()))
	}
	debs := filepath.Join(apt, "debs")
	if err := os.MkdirAll(debs, 0o755); err != nil {
		return err
	}
	if err := runIn(ctx, debs, log, "apt-get", append(append(own, "download"), toInstall(plan.String())...)...); err != nil {
		return err
	}
	files, err := filepath.Glob(debs + "/*.deb")
	if err != nil {
		return err
	}
	root := filepath.Join(dir, "root")
	for _, file := range files {
		if err := run(ctx, log, "dpkg-deb", "-x", file, root); err != nil {
			return err
		}
	}
	return wrap(root, filepath.Join(dir, "bin"))
}

// toInstall returns the packages that apt-get has said it would install.
func toInstall(plan string) []string {
	var names []string
	for line := range strings.Lines(plan) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "Inst" {
			names = append(names, fields[1])
		}
	}
	return names
}

// wrap puts scripts into bin that run the programs below root in place of themselves, with
// the libraries there. A wrapper of MariaDB's programs also says where its files are.
func wrap(root, bin string) error {
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	libraries, err := filepath.Glob(root + "/usr/lib/*-linux-gnu*")
	if err != nil {
		return err
	}
	sound, err := filepath.Glob(root + "/usr/lib/*-linux-gnu*/pulseaudio") // Chromium links it
	if err != nil {
		return err
	}
	libraries = append(libraries, sound...)
	for _, pattern := range programs("*") {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return err
		}
		for _, program := range found {
			if !isExecutable(program) {
				continue // a library, or a link to what is not here
			}
			more := ""
			if name := filepath.Base(program); name == "mariadbd" || name == "mariadb-install-db" {
				more = fmt.Sprintf(" --basedir='%s/usr'", root)
			}
			script := fmt.Sprintf("#!/bin/sh\nLD_LIBRARY_PATH='%s' exec '%s' \"$@\"%s\n", strings.Join(libraries, ":"), program, more)
			if err := replace(filepath.Join(bin, filepath.Base(program)), script); err != nil {
				return err
			}
		}
	}
	return nil
}

// replace puts a script at path, in one step: somebody may just run the one before.
func replace(path, script string) error {
	next := path + ".next"
	if err := os.WriteFile(next, []byte(script), 0o755); err != nil { //nolint:gosec // it is a program
		return err
	}
	return os.Rename(next, path)
}

// unpacked returns the path of a program that Unpack has unpacked.
func unpacked(program string) (string, bool) {
	dir, err := PackagesDir()
	if err != nil {
		return "", false
	}
	path := filepath.Join(dir, "bin", program)
	return path, isExecutable(path)
}

// Find returns the path of a program that is in PATH, or that was unpacked.
func Find(program string) (string, error) {
	return lookFor(fmt.Errorf("%s is not in PATH", program), program)
}

// Behind returns the program that a path stands for, and the root below which it and its
// libraries are: that of what was unpacked, or none.
func Behind(path string) (program, root string) {
	dir, err := PackagesDir()
	if err != nil || filepath.Dir(path) != filepath.Join(dir, "bin") {
		return path, ""
	}
	root = filepath.Join(dir, "root")
	for _, pattern := range programs(filepath.Base(path)) {
		if found, _ := filepath.Glob(filepath.Join(root, pattern)); len(found) > 0 {
			return found[0], root
		}
	}
	return path, ""
}

// programs returns where packages put a program, or all if its name is a star.
func programs(name string) []string {
	return []string{"usr/bin/" + name, "usr/sbin/" + name, "usr/lib/postgresql/*/bin/" + name, "usr/lib/chromium/" + name}
}
