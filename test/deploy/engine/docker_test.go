// Package engine_test runs the images and the example of compose on a docker engine.
// "make test/deploy" builds the image elect and provides the others. Without an engine
// every test fails.
package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	ttl = 10 * time.Second // in examples/compose
	// slack is what a busy machine may take for anything besides.
	slack = 15 * time.Second
)

// docker runs docker, which has to succeed, and returns what it prints.
func docker(t testing.TB, args ...string) string {
	t.Helper()
	stdout, stderr, err := attempt("docker", args...)
	require.NoError(t, err, "docker %s: %s", strings.Join(args, " "), stderr)
	return strings.TrimSpace(stdout)
}

// attempt runs a program that may fail.
func attempt(program string, args ...string) (stdout, stderr string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	return out.String(), errs.String(), err
}

// status returns the exit status of docker run.
func status(t testing.TB, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	stdout, stderr, err := attempt("docker", append([]string{"run", "--rm"}, args...)...)
	var exit *exec.ExitError
	if err != nil {
		require.ErrorAs(t, err, &exit)
		return exit.ExitCode(), stdout, stderr
	}
	return 0, stdout, stderr
}

// start runs a container in the background until the test ends.
func start(t testing.TB, args ...string) (container string) {
	t.Helper()
	container = docker(t, append([]string{"run", "--detach"}, args...)...)
	t.Cleanup(func() { docker(t, "rm", "--force", "--volumes", container) })
	return container
}

// volume returns a new volume, which is removed when the test ends.
func volume(t testing.TB) string {
	t.Helper()
	name := docker(t, "volume", "create")
	t.Cleanup(func() { docker(t, "volume", "rm", name) })
	return name
}

// build builds an image, which is removed when the test ends.
func build(t testing.TB, args ...string) (image string) {
	t.Helper()
	image = fmt.Sprintf("election-test-%d", time.Now().UnixNano())
	docker(t, append([]string{"build", "--quiet", "--tag=" + image}, args...)...)
	t.Cleanup(func() { docker(t, "rmi", image) })
	return image
}

// inspect reads a field of a container or an image into v.
func inspect(t testing.TB, what, field string, v any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(docker(t, "inspect", "--format={{json "+field+"}}", what)), v), what)
}

func exitCode(t testing.TB, container string) (code int) {
	t.Helper()
	inspect(t, container, ".State.ExitCode", &code)
	return code
}

func root(t testing.TB) string {
	t.Helper()
	dir, err := filepath.Abs("../../..")
	require.NoError(t, err)
	return dir
}

// program builds a static program of this repository.
func program(t testing.TB, pkg, path string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", path, pkg)
	cmd.Dir = root(t)
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0", "GOWORK=")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}
