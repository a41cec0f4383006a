// Package unit_test holds the units in deploy/systemd to what systemd takes.
package unit_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const file = "../../../deploy/systemd/elect@.service"

func TestSystemdTakesTheUnit(t *testing.T) {
	require.Empty(t, verify(t, func(unit string) string { return unit }))
}

func TestSystemdRefusesAMistakeInTheUnit(t *testing.T) {
	for from, to := range map[string]string{
		"KillMode=mixed": "KillMode=mixture",
		"StateDirectory": "StateFolder",
		"bin/elect run":  "bin/elected run",
	} {
		require.NotEmpty(t, verify(t, func(unit string) string {
			require.Contains(t, unit, from)
			return strings.ReplaceAll(unit, from, to)
		}), to)
	}
}

// verify returns the complaints of systemd-analyze about the changed unit, on a host
// where elect is installed.
func verify(t *testing.T, change func(string) string) (complaints string) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	root := t.TempDir()
	write := func(path, text string, mode os.FileMode) {
		path = filepath.Join(root, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), mode))
	}
	write("etc/systemd/system/elect@.service", change(string(text)), 0o600)
	write("usr/local/bin/elect", "#!/bin/true\n", 0o700)
	for _, target := range []string{"basic", "multi-user", "network-online", "shutdown", "sysinit"} {
		write("etc/systemd/system/"+target+".target", "[Unit]\nDescription="+target+"\n", 0o600)
	}
	out, err := exec.CommandContext(t.Context(), "systemd-analyze", "--root="+root, "--man=no", "verify", "elect@billing.service").CombinedOutput()
	var exit *exec.ExitError
	if err != nil {
		require.ErrorAs(t, err, &exit, "install systemd (Debian, Ubuntu: apt-get install systemd)")
	}
	return string(out)
}
