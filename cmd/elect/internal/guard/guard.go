//go:build unix

package guard

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// A Guard is a running guard process, seen from elect.
type Guard struct {
	cmd    *exec.Cmd
	orders *os.File
	done   chan struct{}
	end    End

	mu sync.Mutex // for writing orders
}

// An End says how it came out.
type End struct {
	Started bool               // whether the command ran at all
	Status  syscall.WaitStatus // of the command, if Err is nil
	Err     error              // it could not be started (a syscall.Errno), or the guard died
	Expired bool               // it was stopped because nobody extended trust in time
}

// Adopt prepares this process for Start: should a guard die, its descendants
// become this process's own.
func Adopt() error { return adopt() }

// Start starts a guard that runs the command. The command has this process's
// standard input, output and error. The guard keeps the holds open until the
// command and all its descendants are gone; the caller may close them.
func Start(spec Spec, holds ...*os.File) (*Guard, error) {
	spec.Holds = len(holds)
	path, err := self()
	if err != nil {
		return nil, fmt.Errorf("guard: find this program: %w", err)
	}
	ordersR, ordersW, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	reportsR, reportsW, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("guard: %w", err), ordersR.Close(), ordersW.Close())
	}
	cmd := exec.Command(path, Role)
	cmd.Args = append([]string{os.Args[0], Role}, spec.Args...) // for people who read ps
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.ExtraFiles = append([]*os.File{ordersR, reportsW}, holds...)
	// Out of the terminal's foreground group, whose signals are for elect.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	err = cmd.Start()
	_, _ = ordersR.Close(), reportsW.Close() // the guard's ends
	if err != nil {
		return nil, errors.Join(fmt.Errorf("guard: %w", err), ordersW.Close(), reportsR.Close())
	}
	g := &Guard{cmd: cmd, orders: ordersW, done: make(chan struct{})}
	g.order(order{Start: &spec})
	go g.follow(reportsR)
	return g, nil
}

// Extend says until when, as a boottime reading, the lease can be trusted.
func (g *Guard) Extend(until time.Duration) { g.order(order{Until: until}) }

// Signal forwards a signal to the command's process group.
func (g *Guard) Signal(sig syscall.Signal) { g.order(order{Signal: sig}) }

// Stop ends the command and all its descendants: SIGTERM now, SIGKILL after the
// grace, or a grace after the end of trust if that is sooner.
func (g *Guard) Stop() { g.order(order{Stop: true}) }

// Kill is for a guard that does not do its duty: it kills the guard, and then
// all that it guarded.
func (g *Guard) Kill() {
	_ = g.cmd.Process.Kill() // an error means that it has ended
}

// Done is closed when the command and all its descendants are gone.
func (g *Guard) Done() <-chan struct{} { return g.done }

// End says how it came out, after Done.
func (g *Guard) End() End {
	<-g.done
	return g.end
}

// order tells the guard. An error means that the guard is gone, which follow
// finds out.
func (g *Guard) order(o order) {
	g.mu.Lock()
	defer g.mu.Unlock()
	_ = json.NewEncoder(g.orders).Encode(o)
}

// follow reads the guard's reports to the end, collects it, and sees to it that
// nobody is left.
func (g *Guard) follow(reports *os.File) {
	defer close(g.done)
	defer g.orders.Close()
	defer reports.Close()

	last := report{}
	group := 0
	for in := json.NewDecoder(reports); ; {
		var r report
		if in.Decode(&r) != nil {
			break
		}
		last = r
		group = max(group, r.Started)
	}
	err := g.cmd.Wait()
	g.end.Started = group != 0
	switch {
	case last.Failed != 0:
		g.end.Err = last.Failed
	case last.Gone:
		g.end.Status, g.end.Expired = last.Status, last.Expired
	default:
		sweep(group)
		g.end.Err = fmt.Errorf("guard: the process that guards the command died: %v", err)
	}
}

// sweep kills what a dead guard has left to this process, until nobody is left.
func sweep(group int) {
	left := reap()
	round := time.NewTicker(again)
	defer round.Stop()
	for {
		signalAll(group, syscall.SIGKILL)
		select {
		case _, ok := <-left:
			if !ok {
				return
			}
		case <-round.C:
		}
	}
}

// Forwarded returns the signals that elect passes on to the command.
func Forwarded() []os.Signal {
	return []os.Signal{
		syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH, syscall.SIGALRM, syscall.SIGCONT,
	}
}

// Catch relays to ch the forwarded signals, except for those that this process
// was started to ignore (nohup, a shell's background job): the command ignores
// them as well.
func Catch(ch chan<- os.Signal) {
	for _, sig := range Forwarded() {
		if !signal.Ignored(sig) {
			signal.Notify(ch, sig)
		}
	}
}
