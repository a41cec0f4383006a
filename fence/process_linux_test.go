package fence_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/fence"
	"github.com/electkv/election/internal/testenv"
)

func TestMain(m *testing.M) {
	if path := os.Getenv("FENCE_TEST_PATH"); path != "" {
		hold(path)
		return
	}
	m.Run()
}

// hold is the other process: it opens the fence and admits each token that it
// reads, and says so.
func hold(path string) {
	f, err := fence.Open(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("open")
	var token uint64
	for {
		if _, err := fmt.Scan(&token); err != nil {
			return
		}
		if err := f.Admit(token); err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println("admitted", token)
	}
}

func TestAnotherProcessIsRefusedUntilTheFirstHasEnded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fence")
	other, admit := holder(t, path)
	admit(5)
	_, err := fence.Open(path)
	require.ErrorIs(t, err, fence.ErrInUse)
	require.NoError(t, other.Process.Kill())
	_ = other.Wait()
	require.EqualValues(t, 5, kept(t, path), "what was admitted before the kill")
}

// holder starts another process that has the fence open. It returns a function
// that makes it admit a token.
func holder(t *testing.T, path string) (*exec.Cmd, func(token uint64)) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "FENCE_TEST_PATH="+path)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	testenv.Guard(t, cmd)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	expect := func(line string) {
		t.Helper()
		require.True(t, lines.Scan(), "the other process has ended")
		require.Equal(t, line, lines.Text())
	}
	expect("open")
	return cmd, func(token uint64) {
		t.Helper()
		fmt.Fprintln(in, token)
		expect(fmt.Sprintf("admitted %d", token))
	}
}
