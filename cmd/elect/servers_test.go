//go:build unix

package main

import (
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv"
)

// servers are the URLs of real servers. The Consul of testenv grants TTLs from
// one second on.
func servers(t *testing.T) map[string]string {
	t.Helper()
	return map[string]string{
		"etcd":   "etcd://" + testenv.Etcd(t) + "/elect-test",
		"consul": "consul://" + testenv.Consul(t) + "/elect-test?min-ttl=1s",
		"redis":  "redis://" + testenv.Redis(t) + "/0?prefix=elect-test:",
	}
}

func TestTheDemoKeepsItsPromisesOnRealServers(t *testing.T) {
	for name, url := range servers(t) {
		t.Run(name, func(t *testing.T) {
			requireVerdict(t, start(t, "demo", "--store", url))
		})
	}
}

func TestRunWatchStatusAndDoctorWorkOnRealServers(t *testing.T) {
	for name, url := range servers(t) {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.store = url
			w := start(t, "watch", "--store", url, "-o", "json", "job")
			e := p.run(`echo "$ELECTION_TOKEN" >"$1/token"; `+stay, "--id", "me", "--ttl", "4s", "--grace", "500ms")
			token := p.note("token")
			p.pid("child")

			status, stdout, _ := finish(t, "status", "--store", url, "job")
			require.Zero(t, status)
			require.Contains(t, stdout, "me")
			require.Contains(t, stdout, token)

			e.send(t, syscall.SIGTERM)
			require.Equal(t, 143, e.status(t))
			status, _, _ = finish(t, "status", "--store", url, "job")
			require.Equal(t, 1, status)

			eventually(t, "the vacancy is seen", func() bool {
				lines := strings.Split(strings.TrimSpace(w.out.String()), "\n")
				return len(lines) >= 2 && strings.Contains(lines[len(lines)-1], `"state":"vacant"`)
			})
			require.Contains(t, w.out.String(), `"token":`+token+`,"state":"leader"`)

			status, stdout, _ = finish(t, "doctor", "--store", url, "--ttl", "4s")
			require.Zero(t, status, stdout)
			require.Contains(t, stdout, "OK    round trip: ")
		})
	}
}
