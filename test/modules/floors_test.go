package modules_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/semver"
)

// floor is the lowest release of Go that any of the modules may ask for: the code needs 1.26, and
// so do the clients of most stores. A patch release is nobody's business but the user's.
const floor = "1.26.0"

// shared are what the core asks for: the libraries of tests, which no program links, and what these ask for: in the lowest
// versions with which the tests compile. A module has to name what its tests import, or go mod
// tidy adds the latest version of it to the go.mod of each user. Beside them is what all stores
// but memory import, in a version that every client asks for at least.
var shared = map[string]string{
	"golang.org/x/sys": "v0.13.0",

	"github.com/anishathalye/porcupine": "v1.0.0",
	"github.com/davecgh/go-spew":        "v1.1.1",
	"github.com/kr/text":                "v0.2.0", // of the tests of what testify asks for, beside Prometheus's client
	"github.com/pmezard/go-difflib":     "v1.0.0",
	"github.com/stretchr/testify":       "v1.9.0",
	"gopkg.in/yaml.v3":                  "v3.0.1",
	"pgregory.net/rapid":                "v1.1.0",
}

// What a module asks for, its users get, whether they import a package that needs it or not. So
// each backend is imported into an empty module, and what that then selects is compared with what
// another one selects that imports only what the backend imports of others.
func TestABackendRaisesNoVersionThatItDoesNotNeed(t *testing.T) {
	engine := []string{"", "/kv", "/kv/kvfault", "/lock", "/lock/leaderelection"}
	for name, packages := range map[string][]string{
		"mem":        {"/backends/mem"},
		"paxos":      {"/backends/paxos"},
		"group":      {"/group"},
		"file":       {"/backends/file"},
		"etcd":       {"/backends/etcd"},
		"consul":     {"/backends/consul"},
		"redis":      {"/backends/redis"},
		"sql":        {"/backends/sql"},
		"pgxdriver":  {"/backends/sql", "/backends/sql/pgxdriver"},
		"gocronlock": {"/lock/gocronlock"},
		"otel":       {"/observe/otel"},
		"fence":      {"/fence"},
		"prom":       {"/observe/prom"},
		"kvtest":     {"/kv/kvtest"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ours := closure(t, append(slices.Clip(engine), packages...))
			with := ours.module(t).tidy(t)
			alone := ours.others(t).tidy(t)

			require.NotEmpty(t, with.versions)
			require.Equal(t, max(alone.golang, floor), with.golang, "the release of Go")
			for _, path := range slices.Sorted(maps.Keys(with.versions)) {
				version := with.versions[path]
				if isOurs(path) || semver.Compare(version, alone.versions[path]) <= 0 {
					continue
				}
				require.Equal(t, shared[path], version, "%s: %s alone needs %q", path, name, alone.versions[path])
			}
		})
	}
}

func TestNoModuleAsksForAPatchReleaseOfGo(t *testing.T) {
	for _, m := range workspace(t) {
		file := m.read(t)
		require.Equal(t, floor, file.Go.Version, m.Path)
		require.Nil(t, file.Toolchain, m.Path)
	}
}

func TestModulesThatUsersRequireCanBeInstalledByVersion(t *testing.T) {
	for _, m := range workspace(t) {
		if strings.HasPrefix(m.Path, election+"/test") {
			continue
		}
		require.Empty(t, m.read(t).Replace, "%s: go install refuses a module that replaces another", m.Path)
	}
}

func TestModulesRequireEachOtherInOneVersion(t *testing.T) {
	versions := make(map[string]bool)
	for _, m := range workspace(t) {
		for _, r := range m.read(t).Require {
			if isOurs(r.Mod.Path) {
				versions[r.Mod.Version] = true
			}
		}
	}
	require.Len(t, versions, 1, "%v", versions)
}
