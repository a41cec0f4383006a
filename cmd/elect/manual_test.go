//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEachCommandHasAManualPage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := exec.Command(elect, "manual", dir)
	write.Env = append(os.Environ(), "SOURCE_DATE_EPOCH=1767312000")
	out, err := write.CombinedOutput()
	require.NoError(t, err, "%s", out)

	pages := map[string]string{}
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, f := range files {
		text, err := os.ReadFile(filepath.Join(dir, f.Name()))
		require.NoError(t, err)
		pages[f.Name()] = string(text)
	}
	names := []string{"elect.1", "elect-demo-groups.1", "elect-peers-init.1", "elect-peers-renew.1", "elect-peers-add.1"}
	_, help, _ := finish(t, "--help")
	_, help, _ = strings.Cut(help, "Commands:\n")
	for line := range strings.Lines(help) {
		if !strings.HasPrefix(line, "  ") {
			break
		}
		if command := strings.Fields(line)[0]; command != "help" {
			names = append(names, "elect-"+command+".1")
		}
	}
	require.Greater(t, len(names), 8)
	for _, name := range names {
		require.Contains(t, pages, name)
		require.Contains(t, pages[name], ` 1 "2026-01-02" "elect `)
		for line := range strings.Lines(pages[name]) {
			require.Regexp(t, `^(\.(TH|SH|PP|PD|TP|BR|nf|fi|nh|ad)\b|[^.'])`, line, name)
		}
	}
	require.Contains(t, pages["elect-run.1"], "\n.TP\n\\fB\\-\\-ttl duration\\fR\nhow long a leader that died keeps others out (default 15s")
	require.Contains(t, pages["elect-run.1"], "\n.BR elect (1)\n")
	require.Contains(t, pages["elect.1"], "\n.BR elect\\-run (1),\n")
	require.Contains(t, pages["elect-peers.1"], "\n.BR elect\\-peers\\-renew (1)\n")
	require.Contains(t, pages["elect-peers-init.1"], "\n.TP\n\\fB\\-\\-dir folder\\fR\n")
}
