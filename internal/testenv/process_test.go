//go:build unix

package testenv

import (
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
