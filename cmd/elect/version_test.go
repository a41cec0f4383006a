package main

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheVersionIsTheReleaseOrTheModulesOrTheRevision(t *testing.T) {
	t.Parallel()
	const revision = "0123456789abcdef0123456789abcdef01234567"
	for _, row := range []struct {
		about, release, module string
		settings               []debug.BuildSetting
		version, line          string
	}{
		{"a release", "v1.2.3", "v1.2.3", vcs(revision, "false"), "v1.2.3", "v1.2.3 (0123456789ab)"},
		{"a release from changed files", "v1.2.3", "v1.2.3+dirty", vcs(revision, "true"), "v1.2.3", "v1.2.3 (0123456789ab, modified)"},
		{"go install", "", "v1.2.3", nil, "v1.2.3", "v1.2.3"},
		{
			"go build in a checkout", "", "v1.2.4-0.20260102030405-0123456789ab", vcs(revision, "false"),
			"v1.2.4-0.20260102030405-0123456789ab", "v1.2.4-0.20260102030405-0123456789ab",
		},
		{"a checkout without a version", "", "(devel)", vcs(revision, "false"), "0123456789ab", "0123456789ab"},
		{"a changed checkout without a version", "", "", vcs(revision, "true"), "0123456789ab+dirty", "0123456789ab+dirty"},
		{"go run", "", "(devel)", nil, "(devel)", "(devel)"},
		{"nothing is known", "", "", nil, "(devel)", "(devel)"},
	} {
		t.Run(row.about, func(t *testing.T) {
			info := &debug.BuildInfo{GoVersion: "go1.26.0", Main: debug.Module{Version: row.module}, Settings: row.settings}
			b := buildOf(info, row.release)
			require.Equal(t, row.version, b.Version)
			require.Equal(t, "elect "+row.line+" go1.26.0 "+runtime.GOOS+"/"+runtime.GOARCH, b.String())
		})
	}
}

func vcs(revision, modified string) []debug.BuildSetting {
	return []debug.BuildSetting{{Key: "vcs.revision", Value: revision}, {Key: "vcs.modified", Value: modified}}
}
