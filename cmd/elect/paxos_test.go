//go:build linux

package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv"
)

// certify makes certificates for this host.
func certify(t *testing.T) (parameters string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "test")
	status, _, stderr := finish(t, "peers", "init", "--dir", dir, "--here", "127.0.0.1:1")
	require.Zero(t, status, stderr)
	file := func(name string) string { return filepath.Join(dir, "127.0.0.1_1", name) }
	return "cert=" + file("elect.pem") + "&cacert=" + file("ca.pem")
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

	eventually(t, "all members are reached", func() bool {
		status, out, _ = finish(t, "doctor", "--store", client, "--ttl", "5s")
		return status == 0 && strings.Contains(out, "OK    members: all 3 are reached")
	})
	require.Contains(t, out, "OK    certificate: it is good for 364 days")
	require.Contains(t, out, "OK    certificates: the first ends in 364 days: 127.0.0.1:")
	require.Contains(t, out, "OK    quorum: 2 of 3 members decide")
	require.Contains(t, out, "OK    quarantine: a member that was restarted grants nothing for 11")

	second := start(t, "run", "--store", "paxos://"+peers[0]+common, "job", "--", "true")
	require.Equal(t, 125, second.status(t))
	require.Contains(t, second.err.String(), "is the member started twice")

	status, _, stderr := finish(t, "status", "--store", strings.Replace(client, "cluster=test", "cluster=other", 1), "job")
	require.Equal(t, 125, status)
	require.Contains(t, stderr, `its cluster is "other", and the other's "test"`)
}
