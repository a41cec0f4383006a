package boottime_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/boottime"
)

// frameVariable has this test binary, started anew, say where it is.
const frameVariable = "BOOTTIME_TEST_FRAME"

func TestMain(m *testing.M) {
	if os.Getenv(frameVariable) != "" {
		frame, err := boottime.Here()
		if err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		fmt.Println(frame)
		return
	}
	os.Exit(m.Run())
}

// elsewhere returns the frame of a process that unshare(1) starts.
func elsewhere(t *testing.T, args ...string) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command("unshare", append(append([]string{"--map-root-user"}, args...), self)...)
	cmd.Env = append(os.Environ(), frameVariable+"=1")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return strings.TrimSpace(string(out))
}

func TestAFrameIsThatOfEachProcessThatSharesTheClock(t *testing.T) {
	here, err := boottime.Here()
	require.NoError(t, err)
	require.NotEmpty(t, here.Boot)
	require.Equal(t, here.String(), elsewhere(t))
}

// The kernel gives the number of a namespace that has gone to the next one.
func TestTwoNamespacesWithClocksOfTheirOwnAreTwoFrames(t *testing.T) {
	here, err := boottime.Here()
	require.NoError(t, err)
	first := elsewhere(t, "--time", "--fork", "--boottime", "1000")
	second := elsewhere(t, "--time", "--fork", "--boottime", "2000")
	require.NotEqual(t, here.String(), first)
	require.NotEqual(t, here.String(), second)
	require.NotEqual(t, first, second)
}
