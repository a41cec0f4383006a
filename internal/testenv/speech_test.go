//go:build unix

package testenv

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestASpeechIsKeptUpToABound(t *testing.T) {
	var said Speech
	cmd := exec.Command("sh", "-c", "echo out; echo err >&2")
	cmd.Stdout, cmd.Stderr = &said, &said
	require.NoError(t, cmd.Run())
	require.Equal(t, "out\nerr\n", said.String())

	long := strings.Repeat("x", longestSpeech-5)
	for range 3 {
		n, err := said.Write([]byte(long))
		require.NoError(t, err, "whoever speaks is not to hear of it")
		require.Len(t, long, n)
	}
	require.Equal(t, "out\nerr\n"+long[:longestSpeech-8], said.String())
}
