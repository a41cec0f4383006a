//go:build unix

package guard

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"

	"github.com/electkv/election/internal/boottime"
)

// Shell runs the command of Spec.OnLost.
const Shell = "/bin/sh"

// Fine is how that ends if all is well.
const Fine = "exit status 0"

// wants reports whether onLost is to be run. Only a command that has ended with
// status 0, before anybody stopped it, is known to have left nothing elsewhere that
// should be stopped.
func wants(onLost string, ended bool, status syscall.WaitStatus) bool {
	done := ended && status.Exited() && status.ExitStatus() == 0
	return onLost != "" && !done
}

// shell returns how the command of Spec.OnLost is started. done is to be called
// afterwards.
func shell(onLost string, env []string) (args []string, attr *syscall.ProcAttr, done func(), err error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, nil, nil, err
	}
	sys := &syscall.SysProcAttr{Setpgid: true}
	DieWithParent(sys)
	attr = &syscall.ProcAttr{Env: env, Files: []uintptr{null.Fd(), 1, 2}, Sys: sys}
	return []string{"sh", "-c", onLost}, attr, func() { null.Close() }, nil
}

// A cleanup is a guard's run of Spec.OnLost.
type cleanup struct {
	starts chan started               // nil when nothing is being started
	pid    int                        // 0 before it has started
	early  map[int]syscall.WaitStatus // of children that ended before its id was known
	how    string                     // it ended, or why it did not start
}

type started struct {
	pid int
	err error
}

// begin starts the command. That happens on a thread of its own, for it may take
// long, and the thread stays, for the kernel kills with it what it has started.
func (c *cleanup) begin(onLost string) {
	c.starts, c.early = make(chan started, 1), map[int]syscall.WaitStatus{}
	go func() {
		runtime.LockOSThread()
		pid, err := launch(onLost)
		c.starts <- started{pid, err}
		select {}
	}()
}

func launch(onLost string) (int, error) {
	args, attr, done, err := shell(onLost, os.Environ())
	if err != nil {
		return 0, err
	}
	defer done()
	return syscall.ForkExec(Shell, args, attr)
}

// know takes note of how the start has come out.
func (c *cleanup) know(s started) {
	c.starts, c.pid = nil, s.pid
	if s.err != nil {
		c.how = fmt.Sprintf("%s: cannot be executed: %v", Shell, s.err)
	} else if status, ok := c.early[s.pid]; ok {
		c.how = describe(status)
	}
}

// note takes note of a child that has ended.
func (c *cleanup) note(pid int, status syscall.WaitStatus) {
	switch {
	case status.Stopped():
	case c.starts != nil:
		c.early[pid] = status
	case pid == c.pid && pid != 0:
		c.how = describe(status)
	}
}

// kill kills its process group, as long as its id is its own.
func (c *cleanup) kill() {
	if c.pid != 0 && c.how == "" {
		_ = syscall.Kill(-c.pid, syscall.SIGKILL)
	}
}

// cleanUp runs the command of Spec.OnLost for a guard that has died, until due at the
// latest, a boottime reading. It returns how that ended. Nobody is left then.
func (p *Parent) cleanUp(onLost string, env []string, due time.Duration) string {
	left := due - boottime.Now()
	if left <= 0 {
		return "not run: no time was left"
	}
	runtime.LockOSThread() // the kernel kills with the thread what it has started
	defer runtime.UnlockOSThread()
	args, attr, done, err := shell(onLost, env)
	if err != nil {
		return err.Error()
	}
	defer done()
	pid, ended, err := p.spawn(Shell, args, attr)
	if err != nil {
		return err.Error()
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case status := <-ended:
		p.sweep(0)
		return describe(status)
	case <-timer.C:
		p.sweep(pid)
		return describe(<-ended)
	}
}
