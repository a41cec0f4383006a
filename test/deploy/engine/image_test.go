package engine_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheImageHasOneProgramAndNoRoot(t *testing.T) {
	var user string
	inspect(t, "elect", ".Config.User", &user)
	require.Equal(t, "65532:65532", user)
	var size int
	inspect(t, "elect", ".Size", &size)
	require.Less(t, size, 60_000_000)

	container := docker(t, "create", "elect", "version")
	defer docker(t, "rm", container)
	dir := t.TempDir()
	docker(t, "export", "--output="+dir+"/image.tar", container)
	list, stderr, err := attempt("tar", "--list", "--verbose", "--file="+dir+"/image.tar")
	require.NoError(t, err, stderr)
	files := []string{}
	for entry := range strings.SplitSeq(strings.TrimSpace(list), "\n") {
		name := entry[strings.LastIndexByte(entry, ' ')+1:]
		if entry[0] == '-' && !strings.HasPrefix(name, "dev/") && !slices.Contains([]string{".dockerenv", "etc/hostname", "etc/hosts", "etc/resolv.conf"}, name) {
			files = append(files, name)
		}
	}
	require.Equal(t, []string{"elect", "etc/group", "etc/passwd", "etc/ssl/certs/ca-certificates.crt"}, files)
}

func TestTheImageRunsElect(t *testing.T) {
	code, stdout, _ := status(t, "elect", "version")
	require.Zero(t, code)
	require.Contains(t, stdout, "elect ")
}

// A default store in the container's own file system would elect one leader per
// container.
func TestWithoutAStoreTheImageElectsNobody(t *testing.T) {
	code, stdout, stderr := status(t, "elect", "run", "job", "--", "/elect", "version")
	require.Equal(t, 125, code)
	require.Empty(t, stdout, "COMMAND ran")
	require.Contains(t, stderr, "name another with --store or ELECT_STORE")
}

func TestContainersThatShareAVolumeElectOneOfThem(t *testing.T) {
	for _, store := range []string{"file:///var/lib/elect", "sqlite:///var/lib/elect/elect.db"} {
		t.Run(store[:strings.IndexByte(store, ':')], func(t *testing.T) {
			v := volume(t)
			place := []string{"--read-only", "--volume=" + v + ":/var/lib/elect", "--env=ELECT_STORE=" + store, "elect"}
			leader := start(t, append(place, "run", "--ttl=5s", "job", "--", "/elect", "watch", "--store=mem:", "other")...)
			j := newJournal()
			j.follow(t, leader, "0")
			j.await(t, 0, slack, "a leader", func(l line) bool { return strings.Contains(l.text, " elected election=job") })

			try := append(slices.Clone(place), "run", "--try", "job", "--", "/elect", "version")
			code, _, stderr := status(t, try...)
			require.Equal(t, 75, code, stderr)
			docker(t, "stop", leader)
			code, _, stderr = status(t, try...)
			require.Zero(t, code, stderr)
		})
	}
}
