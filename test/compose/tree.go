package main

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/electkv/election/internal/testenv/install"
)

// A tree is the root of a file system, made of files of this machine.
type tree struct{ root string }

// newTree makes a tree that has what every program needs.
func newTree(root string) (*tree, error) {
	for _, dir := range []string{"etc", "run", "tmp", "usr/bin", "usr/lib", "usr/lib64", "usr/sbin", "usr/local/bin", "var"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			return nil, err
		}
	}
	for name, to := range map[string]string{
		"bin": "usr/bin", "lib": "usr/lib", "lib64": "usr/lib64", "sbin": "usr/sbin", "var/run": "../run",
	} {
		if err := os.Symlink(to, filepath.Join(root, name)); err != nil {
			return nil, err
		}
	}
	for name, text := range map[string]string{
		"etc/passwd":        "root:x:0:0:root:/root:/bin/sh\n",
		"etc/group":         "root:x:0:\n",
		"etc/nsswitch.conf": "hosts: files dns\n",
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	return &tree{root}, os.Chmod(filepath.Join(root, "tmp"), 0o777|fs.ModeSticky)
}

// commands puts commands of this machine in, under the paths that they have.
func (t *tree) commands(names ...string) error {
	for _, name := range names {
		from, err := install.Find(name)
		if err != nil {
			return err
		}
		if err := t.program(from, filepath.Join("/usr/bin", name)); err != nil {
			return err
		}
	}
	return nil
}

// folder puts a folder of this machine in, or what is there below a root, under its own path,
// without what bears one of the names.
func (t *tree) folder(root, dir string, but ...string) error {
	return filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		for _, pattern := range but {
			if no, err := filepath.Match(pattern, d.Name()); err != nil {
				return err
			} else if no && d.IsDir() {
				return fs.SkipDir
			} else if no {
				return nil
			}
		}
		if d.IsDir() {
			return os.MkdirAll(filepath.Join(t.root, strings.TrimPrefix(path, root)), 0o755)
		}
		return t.programBelow(root, path, strings.TrimPrefix(path, root))
	})
}

// program puts a file of this machine in, and the libraries that it is linked
// with.
func (t *tree) program(from, at string) error {
	from, root := install.Behind(from)
	return t.programBelow(root, from, at)
}

// programBelow does so with one that may have its libraries below a root.
func (t *tree) programBelow(root, from, at string) error {
	if err := t.copy(from, at); err != nil {
		return err
	}
	libraries, err := librariesOf(from, root)
	if err != nil {
		return err
	}
	for _, library := range libraries {
		if err := t.copy(library, strings.TrimPrefix(library, root)); err != nil {
			return err
		}
	}
	return nil
}

// librariesOf returns the paths of the libraries that a program or a library is
// linked with, and of those that these are. Those below the root come first. What is no
// program has none.
func librariesOf(path, root string) ([]string, error) {
	program, err := elf.Open(path)
	if err != nil {
		return nil, nil //nolint:nilerr // a script, or no program at all
	}
	direct, err := program.ImportedLibraries()
	if err = errors.Join(err, program.Close()); err != nil || len(direct) == 0 {
		return nil, err
	}
	ldd := exec.CommandContext(context.Background(), "ldd", path)
	if below, _ := filepath.Glob(root + "/usr/lib/*-linux-gnu*"); root != "" {
		ldd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+strings.Join(below, ":"))
	}
	out, err := output(ldd)
	if err != nil {
		return nil, fmt.Errorf("ldd %s: %w", path, err)
	}
	var found []string
	for _, m := range regexp.MustCompile(`(?m)(/\S+) \(0x`).FindAllStringSubmatch(out, -1) {
		found = append(found, m[1])
	}
	return found, nil
}

// copy puts a file of this machine in, with its mode, unless it is there.
func (t *tree) copy(from, at string) (err error) {
	to := filepath.Join(t.root, at)
	if _, err := os.Stat(to); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
