//go:build unix

package main

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// environOf returns a process's environment, as it was when it started. It must not be about to become
// another program, and so have none for a moment.
func environOf(t *testing.T, pid int) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	require.NoError(t, err)
	all := map[string][]string{}
	for entry := range strings.SplitSeq(strings.TrimSuffix(string(text), "\x00"), "\x00") {
		name, value, _ := strings.Cut(entry, "=")
		all[name] = append(all[name], value)
	}
	return all
}

func TestRunReplacesWhatTheEnvironmentSaysOfAnotherElection(t *testing.T) {
	t.Parallel()
	if !hasProc() {
		t.Skip("no /proc shows an environment here")
	}
	for name, outer := range map[string][]string{
		"nested":   {elect, "run", "--store", "mem:", "--id", "outer", "--ttl", "1m", "outer", "--"},
		"exported": {"env", "ELECTION_NAME=outer", "ELECTION_ID=outer", "ELECTION_TOKEN=987654321", "ELECTION_TTL=1m", "ELECTION_OTHER=kept"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			inner := []string{elect, "run", "--store", p.store, "--id", "inner", "--ttl", "20s", "job", "--", "sh", "-c", heed, "sh", p.notes}
			command := append(outer, inner...)
			cmd := exec.Command(command[0], command[1:]...)
			cmd.Env = append(os.Environ(), "ELECTION_OTHER=kept")
			e := startCommand(t, cmd)
			env := environOf(t, p.pid("child"))
			rec, held := p.record()
			require.True(t, held)
			require.Equal(t, []string{"job"}, env["ELECTION_NAME"])
			require.Equal(t, []string{"inner"}, env["ELECTION_ID"])
			require.Equal(t, []string{"20s"}, env["ELECTION_TTL"])
			require.Equal(t, []string{strconv.FormatUint(rec.Token, 10)}, env["ELECTION_TOKEN"])
			require.Equal(t, []string{"kept"}, env["ELECTION_OTHER"])
			e.send(t, syscall.SIGTERM)
			require.Equal(t, 143, e.status(t))
		})
	}
}
