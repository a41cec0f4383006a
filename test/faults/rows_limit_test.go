//go:build linux

package faults

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
)

// limitRows are about servers that are there, and do not do all that is asked.
func limitRows() []row {
	return []row{
		{
			number: 39, letter: "m", fault: "no quorum to write: all servers stopped but the leader", own: true,
			only: severalServers,
			must: []oracle.Rule{oracle.LeaderInTime},
			play: func(s *stage) {
				first := s.alive()
				rest := s.servers.others(s.servers.leader(s.name))
				s.fault("two servers of three are stopped, and the leader is left")
				for _, node := range rest {
					node.Pause()
				}
				since := s.awaitOf(first.Who, history.Ended).At
				s.nobody(since, 3*s.ttl)
				for _, node := range rest {
					node.Continue()
				}
				s.healed("they go on")
				s.due("", s.recovery(), "the servers went on")
				s.leader()
				s.pass(s.ttl)
			},
		},
		{
			number: 41, letter: "f", fault: "server may open no more files", own: true, times: 3,
			only: on("a single server shows it; a limit on connections is another row's", "etcd", "consul"),
			must: []oracle.Rule{oracle.LeaderKept, oracle.LeaderInTime},
			play: func(s *stage) {
				first := s.alive()
				pid := listener(s.t, s.addrs[0])
				var before unix.Rlimit
				require.NoError(s.t, unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &before))
				s.fault("the server may open no more files")
				s.keep(first, 2*s.ttl)
				require.NoError(s.t, unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: before.Max}, nil))
				s.enter("dora")
				s.awaitOf("dora", history.Ready)
				s.pass(2 * s.ttl)
				require.Empty(s.t, s.events().Of("dora", history.Seen), "dora reaches the server")
				require.NoError(s.t, unix.Prlimit(pid, unix.RLIMIT_NOFILE, &before, nil))
				s.healed("the server may open files again")
				s.awaitOf("dora", history.Seen)
				s.due(first.Who, s.takeover(), "SIGKILL")
				s.kill(first.Who)
				s.leader(first.Who)
			},
		},
	}
}

// listener returns the process that listens at an address of this machine.
func listener(t testing.TB, addr string) (pid int) {
	t.Helper()
	_, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	number, err := strconv.Atoi(port)
	require.NoError(t, err)
	text, err := os.ReadFile("/proc/net/tcp")
	require.NoError(t, err)
	const listening = "0A"
	socket := ""
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if strings.HasSuffix(fields[1], fmt.Sprintf(":%04X", number)) && fields[3] == listening {
			socket = "socket:[" + fields[9] + "]"
		}
	}
	require.NotEmpty(t, socket, "nobody listens at %s", addr)
	files, err := filepath.Glob("/proc/[0-9]*/fd/*")
	require.NoError(t, err)
	for _, file := range files {
		if to, err := os.Readlink(file); err == nil && to == socket {
			pid, err = strconv.Atoi(strings.Split(file, "/")[2])
			require.NoError(t, err)
			return pid
		}
	}
	require.Fail(t, "no process has the socket")
	return 0
}
