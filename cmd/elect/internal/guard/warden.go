//go:build unix

package guard

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/electkv/election/internal/boottime"
)

const (
	look  = 250 * time.Millisecond // at most, between two looks at the clock: timers sleep through a suspend
	again = 5 * time.Millisecond   // between two rounds of killing
)

// A warden is the guard process.
type warden struct {
	spec    Spec
	orders  <-chan order // closed when elect is dead
	deaths  <-chan death // closed when no child is left
	reports *json.Encoder

	pid    int
	status syscall.WaitStatus
	until  time.Duration // trust
	termed time.Duration // when SIGTERM was sent, or 0

	expired bool // SIGTERM was sent because trust had run out
}

// A death is a child that ended, or stopped.
type death struct {
	pid    int
	status syscall.WaitStatus
}

// Main is what the guard process does. It returns when the command and all
// that came of it are gone. It must be called on the main goroutine.
func Main() error {
	// The kernel ties PR_SET_PDEATHSIG to the thread that forked.
	runtime.LockOSThread()
	unix.CloseOnExec(ordersFD)
	unix.CloseOnExec(reportsFD)
	outlive()
	if err := adopt(); err != nil {
		return err
	}

	in := json.NewDecoder(os.NewFile(ordersFD, "orders"))
	var first order
	if err := in.Decode(&first); err != nil {
		return fmt.Errorf("guard: no order to start: %w", err)
	}
	if first.Start == nil {
		return errors.New("guard: the first order is not to start")
	}
	for i := range first.Start.Holds {
		unix.CloseOnExec(holdsFD + i)
	}
	w := &warden{
		spec:    *first.Start,
		until:   first.Start.Until,
		orders:  receive(in),
		reports: json.NewEncoder(os.NewFile(reportsFD, "reports")),
	}
	return w.guard()
}

// outlive keeps the signals that end elect from ending the guard. They are
// caught, not ignored, because a command would inherit that; what elect was
// started to ignore stays so.
func outlive() {
	caught := make(chan os.Signal, 1)
	for _, sig := range append(Forwarded(), syscall.SIGTSTP, syscall.SIGTTOU, syscall.SIGPIPE) {
		if !signal.Ignored(sig) {
			signal.Notify(caught, sig)
		}
	}
}

func receive(in *json.Decoder) <-chan order {
	orders := make(chan order)
	go func() {
		defer close(orders)
		for {
			var o order
			if in.Decode(&o) != nil { // elect's end is closed, by itself or by its death
				return
			}
			orders <- o
		}
	}()
	return orders
}

func (w *warden) guard() error {
	pid, err := w.start()
	if err != nil {
		var errno syscall.Errno
		if !errors.As(err, &errno) {
			errno = syscall.EINVAL
		}
		return w.reports.Encode(report{Failed: errno})
	}
	w.pid = pid
	w.tell(report{Started: pid})
	w.deaths = reap()
	w.watch()
	w.tell(report{Gone: true, Status: w.status, Expired: w.expired})
	return nil
}

// tell reports to elect. When elect is dead there is nobody to tell, and the
// closed orders say so.
func (w *warden) tell(r report) {
	_ = w.reports.Encode(r)
}

func (w *warden) start() (int, error) {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if w.spec.Foreground {
		attr.Foreground, attr.Ctty = true, 0
	}
	DieWithParent(attr)
	return syscall.ForkExec(w.spec.Path, w.spec.Args, &syscall.ProcAttr{
		Env:   w.spec.Env,
		Files: []uintptr{0, 1, 2},
		Sys:   attr,
	})
}

// reap collects every child that ends, for a subreaper gets children that it
// did not start. The channel is closed when none is left.
func reap() <-chan death {
	deaths := make(chan death)
	go func() {
		defer close(deaths)
		for {
			var d death
			var err error
			d.pid, err = syscall.Wait4(-1, &d.status, syscall.WUNTRACED, nil)
			switch {
			case err == syscall.EINTR:
			case err != nil: // ECHILD
				return
			default:
				deaths <- d
			}
		}
	}()
	return deaths
}

// watch returns when no child is left.
func (w *warden) watch() {
	orders := w.orders
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(w.act())
		select {
		case o, ok := <-orders:
			if !ok {
				orders = nil
				w.terminate()
				break
			}
			w.obey(o)
		case d, ok := <-w.deaths:
			if !ok {
				return
			}
			w.note(d)
		case <-timer.C:
		}
	}
}

// act does what is due and returns when to look again.
func (w *warden) act() time.Duration {
	now := boottime.Now()
	if w.termed == 0 && now >= w.until {
		w.expired = true
		w.terminate()
	}
	due := w.until
	if w.termed != 0 {
		due = min(w.termed, w.until) + w.spec.Grace
		if now >= due {
			signalAll(w.pid, syscall.SIGKILL)
			return again
		}
	}
	return min(due-now, look)
}

func (w *warden) obey(o order) {
	switch {
	case o.Stop:
		w.terminate()
	case o.Signal != 0:
		_ = syscall.Kill(-w.pid, o.Signal) // ESRCH: the group has just ended
	case o.Until != 0:
		w.until = o.Until
	}
}

// terminate asks everybody to end, once. SIGCONT lets the stopped ones hear it.
func (w *warden) terminate() {
	if w.termed != 0 {
		return
	}
	w.termed = boottime.Now()
	signalAll(w.pid, syscall.SIGTERM)
	signalAll(w.pid, syscall.SIGCONT)
}

func (w *warden) note(d death) {
	if d.pid != w.pid {
		return
	}
	if d.status.Stopped() {
		// Ctrl-Z at a terminal that the command has for itself: nobody could
		// ever continue it, and the lease would be kept for nothing.
		if w.spec.Foreground && d.status.StopSignal() == syscall.SIGTSTP {
			_ = syscall.Kill(-w.pid, syscall.SIGCONT)
		}
		return
	}
	w.status = d.status
	w.terminate() // what it left behind
}
