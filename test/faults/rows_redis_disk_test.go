//go:build linux

package faults

import (
	"strings"
	"testing"

	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
	"github.com/electkv/election/internal/testenv"
)

// redisDiskRows fill the disk that the append-only file is on. A server that
// syncs it on each write ends then; another one refuses writes.
func redisDiskRows() []row {
	refuses := row{
		number: 38, letter: "b", fault: "disk full", own: true,
		only:    on("several servers have several disks", kindRedis),
		servers: onSmallDisk(),
		must:    []oracle.Rule{oracle.LeaderInTime},
		play:    func(s *stage) { s.diskFull("MISCONF", func() {}) },
	}
	ends := refuses
	ends.letter, ends.fault = "c", "disk full, with appendfsync always"
	ends.servers = onSmallDisk("--appendfsync", "always")
	ends.play = func(s *stage) { s.diskFull("cannot refresh", s.nodes[0].Restart) }
	return []row{refuses, ends}
}

// onSmallDisk returns for row.servers that the server's data are on a small disk.
func onSmallDisk(args ...string) func(testing.TB, column) *servers {
	return func(t testing.TB, c column) *servers {
		t.Helper()
		disk := testenv.SmallDisk(t, 16<<20)
		servers := c.start(t, append(args, "--dir", disk.Path())...)
		servers.disk = disk
		return servers
	}
}

// diskFull fills the disk until the leader, who hears of an error, has gone, and
// for 2 TTL more.
func (s *stage) diskFull(text string, restart func()) {
	s.t.Helper()
	first := s.alive()
	s.fault("the disk is full")
	s.disk.Fill()
	// A write that does not fit into what is left of the file's last page.
	_ = s.primary().Set(s.t.Context(), s.name+"-filler", strings.Repeat("x", 64<<10), 0).Err()
	s.hears(first.Who, text)
	s.awaitOf(first.Who, history.Ended)
	s.nobody(boottime.Now(), 2*s.ttl)
	s.disk.Free()
	restart()
	s.healed("there is room again")
	s.due("", s.recovery(), "there is room again")
	s.leader()
	s.pass(s.ttl)
}
