//go:build unix

package testenv

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
)

// A guard ends the servers, and whatever else a test started, and removes their
// data when the test process ends, also by SIGKILL.
//
// All servers are in one process group, which each joins before it runs. The
// group's leader is a process that only keeps its id taken. A second process
// waits at a pipe whose other end the test process alone holds and never writes
// to: when that end closes, for whatever reason the process ended, it kills the
// group and removes the data.
type guard struct {
	dir   string   // the folder of all the servers' data and logs
	group int      // the process group of all the servers
	pipe  *os.File // held open as long as this process lives
}

// watch is the second process's script, of process group and folder, in which
// disks may be mounted. A dying server may write a last file while its folder is
// removed.
//
// PostgreSQL's processes leave the group, each for one of its own, and end only
// when they run and find their parent gone. So they are found by their working
// folder, and where there is a parent yet that can be asked to end, it is, and
// takes its shared memory away.
const watch = `
cat >/dev/null
inside() {
	ls -l /proc/[0-9]*/cwd 2>/dev/null | sed -n "s|.* /proc/\([0-9]*\)/cwd -> $1/postgres-.*|\1|p" |
	while read -r pid; do kill -s "$2" "$pid"; done
}
for file in "$2"/postgres-*/data/postmaster.pid; do
	[ -e "$file" ] || continue
	read -r pid <"$file"
	kill -s QUIT "$pid" && asked=yes
done
if [ "$asked" ]; then
	inside "$2" CONT
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		cat "$2"/postgres-*/data/postmaster.pid >/dev/null 2>&1 || break
		sleep 0.2
	done
	inside "$2" KILL
fi 2>/dev/null
kill -s KILL -- "-$1"
while read -r _ at _; do
	case $at in "$2"/*) umount --lazy "$at" ;; esac
done </proc/mounts
rm -rf -- "$2" || { sleep 1; rm -rf -- "$2"; }
`

// theGuard returns the process's guard, which it starts on first use.
var theGuard = sync.OnceValues(startGuard)

func startGuard() (*guard, error) {
	dir, err := os.MkdirTemp("", "election-test-")
	if err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	// Servers that run as another user have their folders in it.
	if err := os.Chmod(dir, 0o711); err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	end, pipe, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	defer end.Close()

	leader := exec.Command("cat")
	leader.Stdin = end
	leader.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := leader.Start(); err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	group := leader.Process.Pid

	watcher := exec.Command("sh", "-c", watch, "sh", fmt.Sprint(group), dir)
	watcher.Stdin = end
	watcher.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := watcher.Start(); err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	return &guard{dir: dir, group: group, pipe: pipe}, nil
}

// attributes makes a process one that the guard ends.
func (g *guard) attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pgid: g.group}
}

// Guard makes a command that has not been started end, by SIGKILL, when the
// test process ends, however that does. It takes the command into the process
// group of all that is guarded: send signals to it alone, not to its group.
func Guard(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	g, err := theGuard()
	if err != nil {
		t.Fatalf("testenv: %v", err)
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Setpgid, cmd.SysProcAttr.Pgid = true, g.group
}
