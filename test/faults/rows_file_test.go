//go:build linux

package faults

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
	"github.com/electkv/election/internal/testenv"
)

// fileRows are about what befalls files, directories and descriptors.
func fileRows() []row {
	rows := []row{
		{
			number: 33, letter: "t", fault: "the leader's page overwritten",
			must: []oracle.Rule{oracle.ForeignUnharmed},
			play: func(s *stage) {
				first := s.alive()
				since := boottime.Now()
				page := s.scribble("somebody else's")
				s.deposed(first, since)
				s.nobody(since+s.slack(s.ttl/3), s.life.Max+s.ttl)
				text, err := os.ReadFile(page)
				require.NoError(s.t, err)
				s.note(history.Event{Kind: history.Found, Value: string(text)})
				s.gone()
			},
		},
		{
			number: 38, letter: "t", fault: "disk full",
			servers: func(t testing.TB, _ column) *servers {
				disk := testenv.SmallDisk(t, 1<<20)
				return &servers{addrs: []string{disk.Path()}, disk: disk}
			},
			play: func(s *stage) {
				first := s.alive()
				s.fault("the disk is full")
				s.disk.Fill()
				s.awaitOf(first.Who, history.Ended)
				// The block that a deleted record leaves may do for another record,
				// but not for its refresh.
				s.pass(4 * s.ttl)
				s.due("", s.recovery(), "the disk had room again")
				s.disk.Free()
				s.healed("the disk has room")
				s.leader()
				s.pass(s.ttl)
				last := s.alive()
				s.keep(last, s.ttl)
				s.pass(s.ttl)
			},
		},
		{
			number: 39, letter: "t", fault: "directory read-only",
			play: func(s *stage) {
				s.barred("the right to write", func() { s.mountReadOnly(); s.t.Cleanup(func() { s.unmount() }) }, s.unmount)
			},
		},
		{
			number: 41, letter: "t", fault: "leader may open no more files",
			play: noFiles,
		},
		{
			number: 50, letter: "a", fault: "leaders killed at any moment, in short terms",
			requests: 400, // each term's end is a vacancy, which each may try to fill
			part:     func(p *part) { p.Turn = 20 * time.Millisecond },
			play:     killOften,
		},
		{
			number: 50, letter: "b", fault: "life file removed", times: 3,
			must: []oracle.Rule{oracle.LeaderKept},
			play: func(s *stage) {
				first := s.alive()
				s.fault("the leader's life file is removed")
				s.keep(first, 2*s.ttl)
				require.Positive(s.t, s.removeAll("lives", "*"))
				s.pass(2 * s.ttl)
				// Now only the deadline tells that it is dead.
				s.due(first.Who, s.takeover(), "SIGKILL")
				s.kill(first.Who)
				s.leader(first.Who)
			},
		},
		{
			number: 50, letter: "c", fault: "temporary files removed, time and again", times: 3,
			must: []oracle.Rule{oracle.LeaderKept},
			play: func(s *stage) {
				first := s.alive()
				s.fault("temporary files are removed")
				s.keep(first, 2*s.ttl)
				removed := 0
				for end := time.Now().Add(2 * s.ttl); time.Now().Before(end); {
					removed += s.removeAll("temps", "*")
				}
				require.Positive(s.t, removed)
				s.due(first.Who, s.crash(), "SIGKILL")
				s.kill(first.Who)
				s.leader(first.Who)
			},
		},
		{
			number: 50, letter: "d", fault: "head of the safe removed", times: 2, part: quietly,
			play: func(s *stage) {
				first := s.alive()
				s.interfered(s.notice(), "the head is removed")
				since := boottime.Now()
				s.removeHead()
				s.deposed(first, since)
				// A folder that has lost its head is left to its operators.
				s.nobody(since+s.slack(s.ttl/3), 2*s.ttl)
				s.due("", s.recovery(), "the folder was removed")
				s.erase()
				s.leader()
			},
		},
		{
			number: 50, letter: "e", fault: "directory wiped",
			play: func(s *stage) {
				first := s.alive()
				s.interfered(s.ttl, "the directory is wiped")
				since := boottime.Now()
				s.removeAll("*")
				s.awaitOf(first.Who, history.Ended)
				s.nobody(since+s.ttl, 2*s.ttl)
				s.due("", s.recovery(), "somebody opened the directory anew")
				s.enter("dora")
				s.leader()
				s.pass(s.ttl)
			},
		},
		{
			number: 50, letter: "f", fault: "a child keeps a dead leader's descriptors",
			play: func(s *stage) {
				first := s.alive()
				inherited := s.inherit(first.Who)
				defer inherited.Close()
				s.due(first.Who, s.takeover(), "SIGKILL")
				since := boottime.Now()
				s.kill(first.Who)
				next := s.leader(first.Who)
				require.Greater(s.t, next.Begin-since, s.ttl/2, "its record lived on for some time")
			},
		},
		{
			number: 50, letter: "g", fault: "one directory by two mounts",
			servers: func(t testing.TB, _ column) *servers {
				dir, other := t.TempDir(), t.TempDir()
				require.NoError(t, unix.Mount(dir, other, "", unix.MS_BIND, ""), "mounting needs root")
				t.Cleanup(func() { require.NoError(t, unix.Unmount(other, unix.MNT_DETACH)) })
				return &servers{addrs: []string{dir, other}}
			},
			play: func(s *stage) {
				for range 4 {
					first := s.alive()
					s.due(first.Who, s.crash(), "SIGKILL")
					s.kill(first.Who)
					s.leader(first.Who)
					s.again(first.Who)
				}
			},
		},
	}
	for i := range rows {
		rows[i].only = on("it is about files", "file")
		rows[i].must = append(rows[i].must, oracle.LeaderInTime)
	}
	return rows
}

// removeAll removes what matches a pattern in the store's directory, and returns
// how much that was.
func (s *stage) removeAll(pattern ...string) (n int) {
	s.t.Helper()
	paths, err := filepath.Glob(filepath.Join(append([]string{s.addrs[0]}, pattern...)...))
	require.NoError(s.t, err)
	for _, path := range paths {
		err := os.Remove(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // its writer was done with it
		}
		if err != nil { // a directory that is not empty
			err = os.RemoveAll(path)
		}
		require.NoError(s.t, err)
		n++
	}
	return n
}

// head returns the name of the safe's head, and the page that it names.
func (s *stage) head() (head, page string) {
	s.t.Helper()
	files, err := os.ReadDir(s.folder())
	require.NoError(s.t, err)
	for _, file := range files {
		if _, page, ok := strings.Cut(file.Name(), "."); ok {
			return file.Name(), page
		}
	}
	require.Fail(s.t, "the safe has no head with a page")
	return "", ""
}

// removeHead removes the head, which may be renamed at the same moment.
func (s *stage) removeHead() {
	s.t.Helper()
	for {
		head, _ := s.head()
		err := os.Remove(filepath.Join(s.folder(), head))
		if err == nil {
			return
		}
		require.ErrorIs(s.t, err, fs.ErrNotExist)
	}
}

// scribble overwrites the page that the head names, and returns its path. A
// refresh may have put another in its place meanwhile.
func (s *stage) scribble(value string) string {
	s.t.Helper()
	s.note(history.Event{Kind: history.Placed, Value: value})
	for {
		head, page := s.head()
		path := filepath.Join(s.folder(), page)
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		require.NoError(s.t, err)
		_, err = f.WriteString(value)
		require.NoError(s.t, errors.Join(err, f.Close()))
		if now, _ := s.head(); now == head {
			return path
		}
	}
}

// mountReadOnly puts a mount over the directory through which nobody can write. (The
// file system itself cannot be made read-only while the leader's life file is
// open.)
func (s *stage) mountReadOnly() {
	s.t.Helper()
	dir := s.addrs[0]
	require.NoError(s.t, unix.Mount(dir, dir, "", unix.MS_BIND, ""), "mounting needs root")
	require.NoError(s.t, unix.Mount("", dir, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	require.ErrorIs(s.t, os.WriteFile(filepath.Join(dir, "probe"), nil, 0o600), unix.EROFS)
}

// unmount takes it away.
func (s *stage) unmount() {
	s.t.Helper()
	_ = unix.Unmount(s.addrs[0], unix.MNT_DETACH) // there may be none
}

// noFiles takes from the leader the right to open files, and gives it back.
func noFiles(s *stage) {
	first := s.alive()
	pid := s.actor(first.Who).Cmd.Process.Pid
	var before unix.Rlimit
	require.NoError(s.t, unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &before))
	s.fault(first.Who + " may open no more files")
	s.due(first.Who, s.takeover(), "its descriptors had run out")
	// Descriptors above the limit stay open.
	require.NoError(s.t, unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: before.Max}, nil))
	s.awaitOf(first.Who, history.Ended)
	second := s.leader(first.Who)
	s.pass(s.ttl)
	require.NoError(s.t, unix.Prlimit(pid, unix.RLIMIT_NOFILE, &before, nil))
	s.healed(first.Who + " may open files again")
	for _, who := range s.others(first.Who, second.Who) {
		s.kill(who)
	}
	s.due(second.Who, s.recovery(), "SIGKILL")
	s.kill(second.Who)
	s.leader(second.Who)
}

// killOften kills leaders at moments of which some are within a write, as what
// they leave behind shows.
func killOften(s *stage) {
	random := rand.New(rand.NewPCG(*seed, 50))
	left := 0
	for kills := 0; kills < 100 || left == 0; kills++ {
		require.Less(s.t, kills, 500, "no kill was within a write")
		first := s.leader()
		s.pass(time.Duration(random.Int64N(int64(25 * time.Millisecond))))
		s.kill(first.Who)
		s.due("", s.crash(), "SIGKILL") // it may be the same one again
		left = max(left, s.litter())
		s.again(first.Who)
	}
	s.leader()
	s.t.Logf("%d files left behind", left)
}

// litter counts the files in the store that only a write that was not finished
// leaves behind: temporary ones, and pages that no head names.
func (s *stage) litter() int {
	s.t.Helper()
	temps, err := os.ReadDir(filepath.Join(s.addrs[0], "temps"))
	require.NoError(s.t, err)
	files, err := os.ReadDir(s.folder())
	require.NoError(s.t, err)
	return len(temps) + max(len(files)-2, 0)
}

// inherit returns the leader's life file as a child of it would have it that was
// given it by intent: the same open file. It demands that no other child gets it
// or any other file of the store.
func (s *stage) inherit(who string) *os.File {
	s.t.Helper()
	pid := s.actor(who).Cmd.Process.Pid
	fds, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/fd")
	require.NoError(s.t, err)
	life := -1
	for _, fd := range fds {
		path, err := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "fd", fd.Name()))
		if err != nil || !strings.HasPrefix(path, s.addrs[0]) {
			continue
		}
		s.requireCloseOnExec(pid, fd.Name())
		if strings.HasPrefix(path, filepath.Join(s.addrs[0], "lives")) {
			life, err = strconv.Atoi(fd.Name())
			require.NoError(s.t, err)
		}
	}
	require.GreaterOrEqual(s.t, life, 0, "the leader's life file")
	handle, err := unix.PidfdOpen(pid, 0)
	require.NoError(s.t, err)
	defer unix.Close(handle)
	fd, err := unix.PidfdGetfd(handle, life, 0)
	require.NoError(s.t, err, "to take a descriptor needs root")
	return os.NewFile(uintptr(fd), "life")
}

func (s *stage) requireCloseOnExec(pid int, fd string) {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "fdinfo", fd))
	require.NoError(s.t, err)
	for line := range strings.Lines(string(text)) {
		if octal, ok := strings.CutPrefix(line, "flags:"); ok {
			flags, err := strconv.ParseInt(strings.TrimSpace(octal), 8, 64)
			require.NoError(s.t, err)
			require.NotZero(s.t, flags&unix.O_CLOEXEC, "descriptor %s is left to children", fd)
			return
		}
	}
	require.Fail(s.t, "no flags")
}
