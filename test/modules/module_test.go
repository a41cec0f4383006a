// Package modules_test holds the modules to what docs/adr/0055-modules.md says of them.
package modules_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

const election = "github.com/electkv/election"

// isOurs reports whether a package or a module is one of this repository.
func isOurs(path string) bool { return path == election || strings.HasPrefix(path, election+"/") }

// A module is one of go.work.
type module struct{ Path, Dir string }

// workspace returns the modules of go.work.
func workspace(t *testing.T) []module {
	t.Helper()
	var modules []module
	for line := range strings.Lines(golang(t, ".", nil, "list", "-m", "-f", "{{.Path}} {{.Dir}}")) {
		path, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
		modules = append(modules, module{path, dir})
	}
	require.Greater(t, len(modules), 5)
	return modules
}

func (m module) read(t *testing.T) *modfile.File {
	t.Helper()
	path := filepath.Join(m.Dir, "go.mod")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	file, err := modfile.Parse(path, text, nil)
	require.NoError(t, err)
	return file
}

// needs are packages of ours with all that they import.
type needs struct {
	packages []string
	modules  map[string]bool   // of ours
	foreign  map[string]string // packages that ours import of others, and the modules of these
}

// closure takes packages by their paths below the module.
func closure(t *testing.T, below []string) needs {
	t.Helper()
	n := needs{modules: make(map[string]bool), foreign: make(map[string]string)}
	for _, path := range below {
		n.packages = append(n.packages, election+path)
	}
	of, imported := make(map[string]string), make(map[string]bool)
	decoder := json.NewDecoder(strings.NewReader(golang(t, ".", nil,
		append([]string{"list", "-deps", "-json=ImportPath,Imports,Module"}, n.packages...)...)))
	for decoder.More() {
		var p struct {
			ImportPath string
			Imports    []string
			Module     *struct{ Path string }
		}
		require.NoError(t, decoder.Decode(&p))
		if p.Module == nil {
			continue // of the standard library
		}
		of[p.ImportPath] = p.Module.Path
		if isOurs(p.ImportPath) {
			n.modules[p.Module.Path] = true
			for _, path := range p.Imports {
				imported[path] = true
			}
		}
	}
	for path := range imported {
		if module, ok := of[path]; ok && !isOurs(path) {
			n.foreign[path] = module
		}
	}
	return n
}

// A user is a module that imports packages.
type user struct {
	imports  []string
	requires map[string]string
	replaces map[string]string
}

// module is a user of ours, in the working tree.
func (n needs) module(t *testing.T) user {
	t.Helper()
	u := user{imports: n.packages, requires: make(map[string]string), replaces: make(map[string]string)}
	for path := range n.modules {
		u.requires[path] = "v0.1.0"
	}
	for _, m := range workspace(t) {
		u.replaces[m.Path] = m.Dir
	}
	return u
}

// others is a user of what ours import of others, in the versions that ours ask for.
func (n needs) others(t *testing.T) user {
	t.Helper()
	u := user{imports: slices.Sorted(maps.Keys(n.foreign)), requires: make(map[string]string)}
	for _, m := range workspace(t) {
		if !n.modules[m.Path] {
			continue
		}
		for _, r := range m.read(t).Require {
			if slices.Contains(slices.Collect(maps.Values(n.foreign)), r.Mod.Path) && !r.Indirect &&
				semver.Compare(r.Mod.Version, u.requires[r.Mod.Path]) > 0 {
				u.requires[r.Mod.Path] = r.Mod.Version
			}
		}
	}
	return u
}

// A selection is what go chooses for a module.
type selection struct {
	golang   string
	versions map[string]string
}

// tidy makes the user's module, and returns what go selects for it.
func (u user) tidy(t *testing.T) selection {
	t.Helper()
	dir := t.TempDir()
	var code, mod strings.Builder
	code.WriteString("package user\n")
	for _, path := range u.imports {
		fmt.Fprintf(&code, "\nimport _ %q\n", path)
	}
	mod.WriteString("module example.com/user\n\ngo 1.24\n")
	for path, version := range u.requires {
		fmt.Fprintf(&mod, "require %s %s\n", path, version)
	}
	for path, folder := range u.replaces {
		fmt.Fprintf(&mod, "replace %s => %s\n", path, folder)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "user.go"), []byte(code.String()), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte(mod.String()), 0o600))

	// The sums of what is looked at here are checked where it is built.
	alone := []string{"GOWORK=off", "GOFLAGS=-mod=mod", "GOSUMDB=off"}
	golang(t, dir, alone, "mod", "tidy")
	s := selection{versions: make(map[string]string), golang: module{Dir: dir}.read(t).Go.Version}
	for line := range strings.Lines(golang(t, dir, alone, "list", "-m", "-f", "{{if not .Main}}{{.Path}} {{.Version}}{{end}}", "all")) {
		if path, version, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			s.versions[path] = version
		}
	}
	return s
}

// golang returns what a go command prints.
func golang(t *testing.T, dir string, env []string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	require.NoError(t, err, "go %s: %s", strings.Join(args, " "), &complaints)
	return string(out)
}
