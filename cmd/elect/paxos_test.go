//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv"
)

// certify carries out what docs/peers.md says, for this host.
func certify(t *testing.T) (parameters string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/peers.md")
	require.NoError(t, err)
	commands := regexp.MustCompile(`(?m)^.*openssl .*$`).FindAllString(string(text), -1)
	require.Len(t, commands, 3)
	dir := t.TempDir()
	for _, command := range commands {
		command = strings.ReplaceAll(strings.ReplaceAll(command, "DNS:", "IP:"), "a.example", "127.0.0.1")
		cmd := exec.Command("sh", "-c", command)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s\n%s", command, out)
	}
	file := func(name string) string { return filepath.Join(dir, name) }
	return "cert=" + file("a.pem") + "&key=" + file("a.key") + "&cacert=" + file("ca.pem")
}

func TestElectWorksAmongMembersThatShareNoStore(t *testing.T) {
	t.Parallel()
	peers := []string{testenv.FreeAddr(t), testenv.FreeAddr(t), testenv.FreeAddr(t)}
	common := "?cluster=test&max-ttl=10s&peers=" + strings.Join(peers, ",") + "&" + certify(t)
	client := "paxos://" + common
	for i, addr := range peers {
		store := fmt.Sprintf("paxos://%s%s&founding=true&dir=%s", addr, common, t.TempDir())
		start(t, "run", "--store", store, "--id", fmt.Sprint("m", i), "--ttl", "5s", "--grace", "100ms", "job", "--", "sleep", "1000")
	}
	leads := func() (id, token string) {
		require.Eventually(t, func() bool {
			status, out, _ := finish(t, "status", "--store", client, "job")
			_, row, _ := strings.Cut(out, "\n")
			fields := strings.Fields(row)
			if status != 0 || len(fields) < 4 {
				return false
			}
			id, token = fields[2], fields[3] // below LEADER and TOKEN
			return true
		}, time.Minute, 50*time.Millisecond)
		return id, token
	}
	first, token := leads()

	// From a member's host, with the member's own settings.
	status, out, _ := finish(t, "status", "--store", "paxos://"+peers[0]+common, "job")
	require.Zero(t, status)
	require.Contains(t, out, first)

	status, out, _ = finish(t, "resign", "--store", client, "job")
	require.Zero(t, status, out)
	_, later := leads()
	require.Greater(t, later, token)

	status, out, _ = finish(t, "doctor", "--store", client, "--ttl", "5s")
	require.Zero(t, status, out)
	require.Contains(t, out, "OK    quorum: 2 of 3 members decide")
	require.Contains(t, out, "OK    members: all 3 are reached")
	require.Contains(t, out, "OK    quarantine: a member that was restarted grants nothing for 11")

	second := start(t, "run", "--store", "paxos://"+peers[0]+common, "job", "--", "true")
	require.Equal(t, 125, second.status(t))
	require.Contains(t, second.err.String(), "is the member started twice")

	status, _, stderr := finish(t, "status", "--store", strings.Replace(client, "cluster=test", "cluster=other", 1), "job")
	require.Equal(t, 125, status)
	require.Contains(t, stderr, `its cluster is "other", and the other's "test"`)
}
