//go:build unix

package guard

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/electkv/election/internal/boottime"
)

// A Guard is a running guard process, seen from elect. Its methods never wait for
// the guard, which may be frozen, but End.
type Guard struct {
	parent *Parent
	pid    int
	ended  <-chan syscall.WaitStatus
	spec   Spec
	limit  time.Duration // from the order to stop, or the end of trust, to the guard's own end
	orders *os.File
	news   chan struct{} // holds one value while there is something to write
	done   chan struct{}
	end    End

	mu      sync.Mutex    // never held while something waits
	next    order         // what is not written yet
	until   time.Duration // when trust ends, or when the order to stop was given
	stopped bool
	over    bool        // the guard has ended
	doom    *time.Timer // kills the guard if it does not do its duty
}

// An End says how it came out.
type End struct {
	Started bool               // whether the command ran at all
	Status  syscall.WaitStatus // of the command, if Err is nil
	Err     error              // it could not be started (a syscall.Errno), or the guard died
	Expired bool               // it was stopped, or not started, because nobody extended trust in time
	OnLost  string             // how the command of Spec.OnLost ended, if it was run
}

// Start starts a guard that runs the command. The command has this process's
// standard input, output and error. The guard keeps the holds open until the
// command and all its descendants are gone; the caller may close them.
func (p *Parent) Start(spec Spec, holds ...*os.File) (*Guard, error) {
	path, err := self()
	if err != nil {
		return nil, fmt.Errorf("guard: find this program: %w", err)
	}
	ordersR, ordersW, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("guard: %w", err)
	}
	defer ordersR.Close()
	reportsR, reportsW, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("guard: %w", err), ordersW.Close())
	}
	defer reportsW.Close()
	files := []uintptr{0, 1, 2, ordersR.Fd(), reportsW.Fd()}
	for _, f := range holds {
		files = append(files, f.Fd())
	}
	args := append([]string{os.Args[0], Role, spec.OnLost, spec.Path}, spec.Args...)
	pid, ended, err := p.spawn(path, args, &syscall.ProcAttr{
		Env:   spec.Env,
		Files: files,
		Sys:   &syscall.SysProcAttr{Setpgid: true}, // out of the terminal's foreground group, whose signals are for elect
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("guard: %w", err), ordersW.Close(), reportsR.Close())
	}
	g := &Guard{
		parent: p,
		pid:    pid,
		ended:  ended,
		spec:   spec,
		limit:  spec.Grace + spec.Patience,
		orders: ordersW,
		news:   make(chan struct{}, 1),
		done:   make(chan struct{}),
		until:  spec.Until,
	}
	g.doom = time.AfterFunc(spec.Until-boottime.Now()+g.limit, g.kill)
	g.tell(func(o *order) {
		o.Start = &charge{Grace: spec.Grace, Until: spec.Until, Foreground: spec.Foreground, Holds: len(holds), Release: spec.Release}
	})
	go g.follow(reportsR)
	return g, nil
}

// Extend says until when, as a boottime reading, the lease can be trusted.
func (g *Guard) Extend(until time.Duration) {
	g.tell(func(o *order) {
		o.Until = until
		if !g.stopped {
			g.expect(until)
		}
	})
}

// Signal forwards a signal to the command's process group.
func (g *Guard) Signal(sig syscall.Signal) {
	g.tell(func(o *order) { o.add(sig) })
	g.wake()
}

// Stop ends the command and all its descendants: SIGTERM now, SIGKILL after the
// grace, or a grace after the end of trust if that is sooner. A guard that has not
// done it when the patience has passed as well is killed, and so are they.
func (g *Guard) Stop() {
	g.tell(func(o *order) {
		if !g.stopped {
			o.Stop, g.stopped = true, true
			g.expect(min(g.until, boottime.Now()))
		}
	})
	g.wake()
}

// Done is closed when the command and all its descendants are gone.
func (g *Guard) Done() <-chan struct{} { return g.done }

// End says how it came out, after Done.
func (g *Guard) End() End {
	<-g.done
	return g.end
}

// tell changes what is to be written to the guard.
func (g *Guard) tell(change func(next *order)) {
	g.mu.Lock()
	change(&g.next)
	g.mu.Unlock()
	select {
	case g.news <- struct{}{}:
	default:
	}
}

// expect has the guard killed if it has not stopped the command a grace after an
// instant, and some more. The caller holds mu.
func (g *Guard) expect(instant time.Duration) {
	g.until = instant
	if !g.over {
		g.doom.Reset(instant - boottime.Now() + g.limit)
	}
}

// kill is for a guard that does not do its duty. When it is dead, what it guarded
// is killed as well.
func (g *Guard) kill() { g.parent.signal(g.pid, syscall.SIGKILL) }

// wake has a guard go on that somebody stopped.
func (g *Guard) wake() { g.parent.signal(g.pid, syscall.SIGCONT) }

// write writes what there is to tell. It alone waits for a guard that does not
// read, until the pipe is closed. An error means that the guard is gone, which
// follow finds out.
func (g *Guard) write(gone <-chan struct{}) {
	for out := json.NewEncoder(g.orders); ; {
		select {
		case <-g.news:
		case <-gone:
			return
		}
		g.mu.Lock()
		o := g.next
		g.next = order{}
		g.mu.Unlock()
		if out.Encode(o) != nil {
			return
		}
	}
}

// follow reads the guard's reports to the end, and sees to it that nobody is left.
func (g *Guard) follow(reports *os.File) {
	defer close(g.done)
	defer reports.Close()
	gone := make(chan struct{})
	var writing sync.WaitGroup
	writing.Go(func() { g.write(gone) })

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
	status := <-g.ended
	g.mu.Lock()
	g.over = true
	g.doom.Stop()
	due := min(g.until, boottime.Now()) + g.spec.Grace
	g.mu.Unlock()
	close(gone)
	g.orders.Close()
	writing.Wait()
	g.end.Started = group != 0
	switch {
	case last.Failed != 0:
		g.end.Err = last.Failed
	case last.Gone:
		g.end.Status, g.end.Expired, g.end.OnLost = last.Status, last.Expired, last.OnLost
	default:
		g.parent.sweep(group)
		if g.spec.OnLost != "" {
			g.end.OnLost = g.parent.cleanUp(g.spec.OnLost, g.spec.Env, due)
		}
		g.end.Err = fmt.Errorf("guard: the process that guards the command died: %s", describe(status))
	}
}

// describe says how a process ended.
func describe(status syscall.WaitStatus) string {
	if status.Signaled() {
		return status.Signal().String()
	}
	return fmt.Sprintf("exit status %d", status.ExitStatus())
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
