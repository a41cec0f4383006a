package install

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOnlyServicesThatWereEnabledBeforeStaySo(t *testing.T) {
	etc := t.TempDir()
	link := func(name string) string {
		path := filepath.Join(etc, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.Symlink("/nowhere", path))
		return path
	}
	old := []string{link("rc3.d/S01cron"), link("systemd/system/multi-user.target.wants/cron.service")}
	before := enabled(etc)
	link("rc2.d/S01redis")
	link("systemd/system/multi-user.target.wants/redis.service")
	link("systemd/system/redis.service") // an alias starts nothing
	var log strings.Builder
	disable(&log, etc, before)
	require.Equal(t, "not enabled: redis.service\n", log.String())
	require.Equal(t, old, slices.Sorted(maps.Keys(enabled(etc))))
}
