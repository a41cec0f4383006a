//go:build linux

package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/internal/testenv/install"
)

// partitionRows divide the servers from each other.
func partitionRows() []row {
	return []row{
		{
			number: 15, letter: "m", fault: "leader alone with the store's leader, in a minority",
			only:    and(severalServers, withLeader("15p")),
			must:    []oracle.Rule{oracle.LeaderInTime},
			servers: startOnHosts,
			play: func(s *stage) {
				first, node := s.besideLeader()
				s.fault("the store's leader is cut off from the other servers, and " + first.Who + " is left with it")
				bound := s.recovery()
				if s.col.kind == kindConsul {
					// A server passes blocking queries on to the leader. Where that has
					// vanished, they end seven seconds after their time is up: 10 s, and
					// up to a sixteenth more.
					bound += 18 * time.Second
				}
				s.due(first.Who, bound, "the partition")
				s.split(node)
				s.onlyReach(first.Who, func(i int) bool { return i == node })
				for _, who := range s.others(first.Who) {
					s.onlyReach(who, func(i int) bool { return i != node })
				}
				s.awaitOf(first.Who, history.Ended)
				s.leader(first.Who)
				s.pass(2 * s.ttl)
				s.mend()
				s.healed("the servers are connected again")
				s.heal()
				s.pass(s.ttl)
				s.due("", s.recovery(), "all was healed")
				s.alive()
			},
		},
	}
}

// startOnHosts starts three servers on hosts of their own.
func startOnHosts(t testing.TB, c column) *servers {
	t.Helper()
	network := testenv.NewNetwork(t)
	all := &servers{}
	for range 3 {
		host := network.Host()
		all.hosts = append(all.hosts, host)
		all.addrs = append(all.addrs, host.Addr()+":2379")
	}
	all.all = all.addrs
	for i, host := range all.hosts {
		// A server talks to itself too. With a loopback of its own, its host has no
		// way to this machine's, which it does not need.
		runOn(t, host, "", "ip", "link", "set", "lo", "up")
		run := etcdOn
		if c.kind == kindConsul {
			run = consulOn
		}
		cmd := run(t, all.hosts, i)
		var log testenv.Speech
		cmd.Stdout, cmd.Stderr = &log, &log
		host.Command(cmd)
		require.NoError(t, cmd.Start())
		t.Cleanup(func() {
			require.NoError(t, cmd.Process.Kill())
			_ = cmd.Wait() // it was killed
			if t.Failed() {
				t.Logf("the server on %s said:\n%s", host.Addr(), &log)
			}
		})
	}
	leading := func() bool { return storeLeader(t, c, all.addrs) >= 0 }
	require.Eventually(t, leading, time.Minute, 100*time.Millisecond, "the servers elect no leader")
	return all
}

func etcdOn(t testing.TB, hosts []*testenv.Host, i int) *exec.Cmd {
	path, err := install.Etcd.Path(t.Context(), os.Stderr)
	require.NoError(t, err)
	members := []string{}
	for n, host := range hosts {
		members = append(members, fmt.Sprintf("n%d=http://%s:2380", n, host.Addr()))
	}
	client, peer := "http://"+hosts[i].Addr()+":2379", "http://"+hosts[i].Addr()+":2380"
	return exec.Command(path, "--name", fmt.Sprintf("n%d", i), "--data-dir", t.TempDir(),
		"--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
		"--initial-cluster", strings.Join(members, ","),
		"--heartbeat-interval", "100", "--election-timeout", "500", "--unsafe-no-fsync")
}

func consulOn(t testing.TB, hosts []*testenv.Host, i int) *exec.Cmd {
	path, err := install.Consul.Path(t.Context(), os.Stderr)
	require.NoError(t, err)
	join := []string{}
	for _, host := range hosts {
		join = append(join, host.Addr()+":8301")
	}
	text, err := json.Marshal(map[string]any{
		"server": true, "bootstrap_expect": len(hosts), "retry_join": join, "retry_interval": "1s",
		"node_name": fmt.Sprintf("n%d", i), "data_dir": t.TempDir(),
		"bind_addr": hosts[i].Addr(), "client_addr": hosts[i].Addr(),
		"ports": map[string]int{
			"http": 2379, "server": 8300, "serf_lan": 8301, "serf_wan": -1, "dns": -1, "grpc": -1, "grpc_tls": -1,
		},
		"session_ttl_min": "1s", "performance": map[string]any{"raft_multiplier": 1},
		"disable_update_check": true, "connect": map[string]any{"enabled": false},
	})
	require.NoError(t, err)
	config := filepath.Join(t.TempDir(), "consul.json")
	require.NoError(t, os.WriteFile(config, text, 0o600))
	return exec.Command(path, "agent", "-config-file", config)
}

// storeLeader returns which of the servers leads, in the eyes of the first that
// knows, or a negative number.
func storeLeader(t testing.TB, c column, addrs []string) int {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if c.kind == kindConsul {
		return consulLeader(ctx, addrs)
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: addrs, Logger: zap.NewNop()})
	require.NoError(t, err)
	defer client.Close()
	for i, addr := range addrs {
		status, err := client.Status(ctx, addr)
		if err == nil && status.Leader != 0 && status.Leader == status.Header.MemberId {
			return i
		}
	}
	return -1
}

func consulLeader(ctx context.Context, addrs []string) int {
	for _, addr := range addrs {
		config := api.DefaultConfig()
		config.Address = addr
		client, err := api.NewClient(config)
		if err != nil {
			return -1
		}
		leader, err := client.Status().LeaderWithQueryOptions((&api.QueryOptions{}).WithContext(ctx))
		for i, addr := range addrs {
			if err == nil && leader != "" && strings.Split(leader, ":")[0] == strings.Split(addr, ":")[0] {
				return i
			}
		}
	}
	return -1
}

// besideLeader waits until a candidate leads that can reach the store's leader,
// and returns both. A Consul candidate knows one server only.
func (s *stage) besideLeader() (first history.Stretch, node int) {
	s.t.Helper()
	for range 30 {
		first = s.alive()
		node = storeLeader(s.t, s.col, s.addrs)
		require.GreaterOrEqual(s.t, node, 0)
		if slices.Contains(s.actor(first.Who).part.Addrs, s.addrs[node]) {
			return first, node
		}
		s.tell(first.Who, "resign")
		s.awaitOf(first.Who, history.Ended)
	}
	require.Fail(s.t, "the candidate at the store's leader never came to lead")
	return first, node
}

// split has one server and the others lose what they get from each other.
func (s *stage) split(node int) {
	s.t.Helper()
	for i, host := range s.hosts {
		from := []string{}
		for j, other := range s.hosts {
			if (i == node) != (j == node) {
				from = append(from, other.Addr())
			}
		}
		runOn(s.t, host, fmt.Sprintf(`table ip split {
	chain input {
		type filter hook input priority 0
		ip saddr { %s } drop
	}
}
`, strings.Join(from, ", ")), "nft", "-f", "-")
	}
}

// mend ends that.
func (s *stage) mend() {
	s.t.Helper()
	for _, host := range s.hosts {
		runOn(s.t, host, "delete table ip split\n", "nft", "-f", "-")
	}
}

// runOn carries out a command on a host.
func runOn(t testing.TB, host *testenv.Host, input, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Stdin = strings.NewReader(input)
	host.Command(cmd)
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", text)
}

// onlyReach lets a candidate reach only some of the servers.
func (s *stage) onlyReach(who string, reached func(server int) bool) {
	s.t.Helper()
	s.note(history.Event{Kind: history.Fault, Who: who, Text: "reaches only some servers"})
	for i, link := range s.actor(who).links {
		if !reached(i) {
			link.Cut()
		}
	}
}
