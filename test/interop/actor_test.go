//go:build linux

package interop

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/internal/witness"
)

// An actor is a process of the fleet, seen from outside, with whatever it has
// started: they are a process group, which is killed and put to sleep as one.
type actor struct {
	part part
	link *testenv.Proxy

	cmd      *exec.Cmd
	listener net.Listener
	said     *testenv.Speech
	gone     chan struct{}   // closed when the process has been waited for
	heard    *sync.WaitGroup // all that listen to what it says

	mu    sync.Mutex
	conns []net.Conn
}

// start starts the process, anew if it has ended. Its events go to note.
func (a *actor) start(note func(history.Event)) error {
	err := os.Remove(a.part.Socket)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if a.listener, err = net.Listen("unix", a.part.Socket); err != nil {
		return err
	}
	if a.cmd, err = witness.Again(partVariable, a.part); err != nil {
		return err
	}
	a.said, a.gone = &testenv.Speech{}, make(chan struct{})
	a.cmd.Stderr = a.said
	a.cmd.WaitDelay = time.Second
	// It dies with the test process, also if it is asleep.
	a.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := a.cmd.Start(); err != nil {
		return err
	}
	listener, heard := a.listener, &sync.WaitGroup{}
	a.heard = heard
	heard.Go(func() { a.hear(listener, heard, note) })
	cmd, gone := a.cmd, a.gone
	go func() {
		defer close(gone)
		awaitExit(cmd.Process.Pid)
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what it has left behind
		_ = cmd.Wait()
	}()
	return nil
}

// awaitExit waits until a process has ended, and leaves its id and its group's
// taken.
func awaitExit(pid int) {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// hear reads what the process and its children say.
func (a *actor) hear(listener net.Listener, heard *sync.WaitGroup, note func(history.Event)) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		a.mu.Lock()
		a.conns = append(a.conns, conn)
		a.mu.Unlock()
		heard.Go(func() { witness.Hear(conn, note) })
	}
}

// tell gives an order to the process and its children: whoever is concerned
// obeys. One that is gone is not.
func (a *actor) tell(order string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, conn := range a.conns {
		_, _ = io.WriteString(conn, order+"\n")
	}
}

// signal sends a signal to the whole group.
func (a *actor) signal(sig syscall.Signal) error {
	select {
	case <-a.gone:
		return nil
	default:
	}
	err := syscall.Kill(-a.cmd.Process.Pid, sig)
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}

// kill ends the group, and returns when all that it has said is noted.
func (a *actor) kill() error {
	err := a.signal(syscall.SIGKILL)
	<-a.gone
	a.settle()
	return err
}

// settle waits until all that was said is noted, when the process is gone.
func (a *actor) settle() {
	a.listener.Close()
	done, heard := make(chan struct{}), a.heard
	go func() {
		defer close(done)
		heard.Wait()
	}()
	patience := time.NewTimer(2 * time.Second)
	defer patience.Stop()
	select {
	case <-done:
	case <-patience.C: // a child that has left the group
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, conn := range a.conns {
		conn.Close()
	}
	a.conns = nil
}

// end waits until a process that was told to close has ended, and kills it if it
// has not within patience.
func (a *actor) end(patience time.Duration) error {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-a.gone:
	case <-timer.C:
		_ = a.signal(syscall.SIGQUIT) // it says where it hangs
		timer.Reset(2 * time.Second)
		select {
		case <-a.gone:
		case <-timer.C:
		}
		return errors.Join(fmt.Errorf("%s did not end within %v:\n%s", a.part.Who, patience, a.said), a.kill())
	}
	a.settle()
	if state := a.cmd.ProcessState; !state.Success() {
		return fmt.Errorf("%s ended with %v:\n%s", a.part.Who, state, a.said)
	}
	return nil
}

// socketIn returns the path of an actor's socket in a folder with a short name:
// there are about a hundred bytes for it.
func socketIn(dir, who string) string { return filepath.Join(dir, who) }
