//go:build linux

package faults

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv/install"
)

var old = flag.String("faults.old", "", "the `commit` whose candidates stand beside this version's (default the last release, see tools/last-release.sh)")

// In the first engine nobody is heir unless a succession is named, and a part of that
// version cannot name one.
const (
	unnamed    = "Logger: c.log}"
	named      = "Logger: c.log, Succession: c.succession()}"
	succession = `package faults

import (
	"strings"

	"github.com/electkv/election"
)

func (c *candidate) succession() election.Succession {
	if strings.HasPrefix(c.who, "old") {
		return election.FirstCome
	}
	return nil
}
`
)

// oldRelease returns this program as it was in the last release, or in the commit of
// -faults.old. It is built once for each commit.
func oldRelease(t testing.TB) string {
	t.Helper()
	path, err := buildOld()
	require.NoError(t, err)
	return path
}

var buildOld = sync.OnceValues(func() (string, error) {
	name := *old
	if name == "" {
		var err error
		if name, err = run(".", "../../tools/last-release.sh"); err != nil {
			return "", err
		}
	}
	commit, err := inHistory("rev-parse", "--verify", "--quiet", name+"^{commit}")
	if err != nil {
		return "", fmt.Errorf("the commit %s, whose candidates are to stand beside this version's, is not in this repository: "+
			"use a clone with its whole history (git fetch --unshallow), or another commit (-faults.old): %w", name, err)
	}
	flags := []string{"test", "-c", "-ldflags=-w", "-o", "candidate"}
	if raceDetected() {
		flags = append(flags, "-race")
	}
	what := sha256.Sum256([]byte(strings.Join(flags, " ") + commit + named + succession + runtime.Version()))
	folder, err := install.Template(context.Background(), fmt.Sprintf("release-%.12s-%x", commit, what[:4]), func(dir string) error {
		return build(dir, commit, flags)
	})
	return filepath.Join(folder, "candidate"), err
})

// raceDetected reports whether this program has the race detector.
func raceDetected() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// build puts the program of a commit into a folder.
func build(dir, commit string, flags []string) error {
	source := filepath.Join(dir, "source")
	if err := os.Mkdir(source, 0o755); err != nil {
		return err
	}
	archive := filepath.Join(dir, "source.tar")
	if _, err := inHistory("archive", "--format=tar", "--output="+archive, commit); err != nil {
		return err
	}
	if _, err := run(dir, "tar", "-x", "-f", archive, "-C", source); err != nil {
		return err
	}
	if err := nameSuccession(filepath.Join(source, "test", "faults")); err != nil {
		return err
	}
	work := filepath.Join(source, "go.work") // an older commit is one module
	if _, err := os.Stat(work); err != nil {
		work = "off"
	}
	if _, err := run(source, "env", append([]string{"GOWORK=" + work, "go"}, append(flags, "./test/faults")...)...); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(source, "candidate"), filepath.Join(dir, "candidate")); err != nil {
		return err
	}
	return os.RemoveAll(source)
}

// nameSuccession has candidates in a folder name a succession, if they do not have
// one when none is named.
func nameSuccession(folder string) error {
	file := filepath.Join(folder, "candidate_test.go")
	text, err := os.ReadFile(file)
	if err != nil || strings.Contains(string(text), "NoHeir:") {
		return err
	}
	if strings.Count(string(text), unnamed) != 1 {
		return fmt.Errorf("%s does not have %q once, so its candidates cannot be given a succession", file, unnamed)
	}
	return errors.Join(
		os.WriteFile(file, []byte(strings.Replace(string(text), unnamed, named, 1)), 0o644),
		os.WriteFile(filepath.Join(folder, "succession_test.go"), []byte(succession), 0o644),
	)
}

// inHistory asks git about this repository, which may belong to another user than the tests run as.
func inHistory(args ...string) (string, error) {
	return run(".", "git", append([]string{"-c", "safe.directory=*", "-C", "../.."}, args...)...)
}

// run carries out a command in a folder, and returns what it says.
func run(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	said, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", cmd, err, said)
	}
	return strings.TrimSpace(string(said)), nil
}
