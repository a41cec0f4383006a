package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// inRoot goes on in the root of the repository.
func inRoot(t *testing.T) *file {
	t.Chdir("../..")
	f, err := readFile()
	require.NoError(t, err)
	return f
}

// fakeDocker makes a script the only command docker that there is, and no other command
// of Compose.
func fakeDocker(t *testing.T, script string) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "docker"), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
	t.Setenv("PATH", dir)
	t.Setenv("COMPOSE", "")
}

func TestWhatIsMissingIsNamedInOneLine(t *testing.T) {
	f := inRoot(t)
	for _, missing := range []struct{ script, says string }{
		{`echo "Cannot connect to the Docker daemon at unix:///var/run/docker.sock." >&2; exit 1`,
			"no docker engine answers: Cannot connect to the Docker daemon at unix:///var/run/docker.sock."},
		{`[ "$1" = version ] || exit 1`,
			`there is neither "docker compose" nor docker-compose: install one (Debian, Ubuntu: apt-get install docker-compose; of Docker's own packages: docker-compose-plugin)`},
	} {
		fakeDocker(t, missing.script)
		_, err := openProject(t.Context(), t.Output())
		require.EqualError(t, err, missing.says)
	}
	t.Setenv("PATH", t.TempDir())
	_, err := openProject(t.Context(), t.Output())
	require.EqualError(t, err, "docker is not in PATH: install a docker engine (Debian, Ubuntu: apt-get install docker.io)")

	fakeDocker(t, `[ "$1" = pull ] && echo "lookup registry: no such host" >&2; exit 1`)
	err = provide(t.Context(), t.Output(), f.images("")[:1], false)
	require.EqualError(t, err, "the image gcr.io/etcd-development/etcd:v3.6.12 is not here, and no registry can be reached: "+
		`lookup registry: no such host; "go run ./test/compose images" builds a stand-in, for tests only`)
}

func TestComposeIsTheVersionThatThereIs(t *testing.T) {
	fakeDocker(t, `[ "$1 $2" = "compose version" ]`)
	command, err := findCompose(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"docker", "compose"}, command)

	fakeDocker(t, "exit 1")
	version1 := filepath.Join(os.Getenv("PATH"), "docker-compose")
	require.NoError(t, os.WriteFile(version1, []byte("#!/bin/sh\n[ $1 = version ]\n"), 0o755))
	command, err = findCompose(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"docker-compose"}, command)

	t.Setenv("COMPOSE", "podman compose")
	command, err = findCompose(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"podman", "compose"}, command)
}

func TestStandInsAreForWhereNoRegistryAnswers(t *testing.T) {
	const inspect = `case "$1" in image) %s ;; pull) %s ;; *) echo "called $1" >&2; exit 1 ;; esac`
	absent, present, standIn := "exit 1", "echo", "echo etcd of this machine"
	pulled, refused, unreached := "exit 0", "echo manifest unknown >&2; exit 1", "echo Error response from daemon: dial tcp: i/o timeout >&2; exit 1"
	for _, c := range []struct {
		here, pull string
		build      bool
		says, err  string
	}{
		{present, "echo not to be called >&2; exit 1", true, "", ""},
		{absent, pulled, true, "pulling image\n", ""},
		{standIn, pulled, true, "pulling image\n", ""},
		{absent, refused, true, "pulling image\n", "pull image: manifest unknown"},
		{standIn, refused, true, "pulling image\n", "pull image: manifest unknown"},
		{standIn, unreached, false, "pulling image\nno registry can be reached (dial tcp: i/o timeout): using the stand-in for image: etcd of this machine\n", ""},
		{absent, unreached, true, "pulling image\nno registry can be reached (dial tcp: i/o timeout): building a stand-in for image, for tests only\n",
			"there is no stand-in for image: add one to test/compose/standins"},
	} {
		fakeDocker(t, strings.Replace(strings.Replace(inspect, "%s", c.here, 1), "%s", c.pull, 1))
		var log strings.Builder
		err := provide(t.Context(), &log, []string{"image"}, c.build)
		require.Equal(t, c.says, log.String())
		if c.err == "" {
			require.NoError(t, err)
		} else {
			require.EqualError(t, err, c.err)
		}
	}
}

func TestTakenAddressesAreNamedUnlessTheContainersHaveThem(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	taken := listener.Addr().String()
	p := &project{log: t.Output(), file: &file{Services: map[string]service{
		"etcd":   {Ports: []string{taken + ":2379"}},
		"etcd-1": {Ports: []string{taken + ":2379"}, Profiles: []string{"cluster"}},
		"redis":  {Ports: []string{"127.0.0.1:0:6379"}},
	}}}
	fakeDocker(t, "echo redis")
	require.EqualError(t, p.portsFree(t.Context(), ""), "these addresses are in use: "+taken+" for etcd; stop what listens there")
	require.EqualError(t, p.portsFree(t.Context(), "cluster"),
		"these addresses are in use: "+taken+" for etcd, "+taken+" for etcd-1; stop what listens there")

	fakeDocker(t, "echo redis; echo etcd")
	require.NoError(t, p.portsFree(t.Context(), ""))
}

func TestAServiceThatEndsIsNotWaitedFor(t *testing.T) {
	p := &project{log: t.Output()}
	fakeDocker(t, `case "$1" in ps) echo id ;; inspect) echo exited starting ;; logs) echo first; echo no space left >&2 ;; esac`)
	require.EqualError(t, p.awaitHealthy(t.Context(), []string{"mariadb"}), "mariadb: it has ended; it said last: no space left")

	fakeDocker(t, `[ "$1" = ps ]`)
	require.EqualError(t, p.awaitHealthy(t.Context(), []string{"etcd-1"}), `etcd-1: it has no container: start it with "make cluster"`)

	// It is not healthy before its check says so.
	fakeDocker(t, `dir=${0%/*}; case "$1" in ps) echo id ;; inspect) [ -e "$dir/asked" ] && echo running healthy || echo running starting; : > "$dir/asked" ;; esac`)
	require.NoError(t, p.awaitHealthy(t.Context(), []string{"etcd"}))
	require.FileExists(t, filepath.Join(os.Getenv("PATH"), "asked"))
}

func TestEveryServiceIsOnLoopbackAndHasAStandIn(t *testing.T) {
	f := inRoot(t)
	require.Equal(t, []string{"consul", "etcd", "mariadb", "postgres", "redis"}, f.names(""))
	require.Len(t, f.names("cluster"), 17)
	seen := map[string]string{}
	for name, s := range f.Services {
		for _, address := range s.addresses() {
			host, _, err := net.SplitHostPort(address)
			require.NoError(t, err, name)
			require.Equal(t, "127.0.0.1", host, name)
			require.Empty(t, seen[address], "%s and %s have %s", name, seen[address], address)
			seen[address] = name
		}
	}
	for _, image := range f.images("cluster") {
		_, err := recipes.ReadFile("standins/" + standInFor(image) + "/Dockerfile")
		require.NoError(t, err)
		require.NotNil(t, fillings()[standInFor(image)], image)
	}
	all, err := clusters(f)
	require.NoError(t, err)
	for _, c := range all {
		require.NoError(t, c.close())
	}
}

func TestATreeHasTheLibrariesOfItsPrograms(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("images are made of Linux's programs")
	}
	root, err := newTree(filepath.Join(t.TempDir(), "root"))
	require.NoError(t, err)
	require.NoError(t, root.commands("sh"))
	sh, err := exec.LookPath("sh")
	require.NoError(t, err)
	libraries, err := librariesOf(sh, "")
	require.NoError(t, err)
	require.NotEmpty(t, libraries)
	for _, library := range libraries {
		require.FileExists(t, filepath.Join(root.root, library))
	}
	require.ErrorContains(t, root.commands("no-such-command"), "no-such-command")
}
