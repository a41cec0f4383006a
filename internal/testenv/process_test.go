//go:build unix

package testenv

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFailedStartTellsTheServersLog(t *testing.T) {
	s, err := newRedis("--no-such-setting", "1")
	require.NoError(t, err)
	err = s.start()
	require.ErrorContains(t, err, "redis ended by itself")
	require.ErrorContains(t, err, "no-such-setting")
}

// Otherwise it would still write into a folder that is to be removed, or used by the next process.
func TestAKilledServerHasNoChildrenLeft(t *testing.T) {
	s := StartRedis(t)
	for _, command := range []string{"config set rdb-key-save-delay 1000000000", "set key value", "bgsave"} { // that many microseconds
		_, err := s.askText(t.Context(), strings.Fields(command)...)
		require.NoError(t, err)
	}
	child, err := children(s.cmd.Process.Pid)
	require.NoError(t, err)
	require.Len(t, child, 1)
	s.Kill()
	require.True(t, gone(processState(child[0])))
}
