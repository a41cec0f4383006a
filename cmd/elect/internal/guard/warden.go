//go:build unix

package guard

import (
	"encoding/json"
	"errors"
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

// A warden is the guard process. All that it does to other processes happens on
// one goroutine, which never waits for anything but news: so no child is taken
// while it is signalled, and nothing delays a deadline.
type warden struct {
	onLost  string
	path    string
	args    []string
	orders  *inbox
	endings <-chan os.Signal
	reports *json.Encoder

	charge charge
	until  time.Duration // trust
	pid    int           // of the command
	ended  bool          // the command was collected: its process id may be a stranger's
	status syscall.WaitStatus
	termed time.Duration // when SIGTERM was sent, or 0
	clean  cleanup

	expired  bool // SIGTERM was sent because trust had run out
	killed   bool // SIGKILL was sent
	orphaned bool // elect is dead
}

// Main is what the guard process does, with the arguments after its role. It returns
// when the command and all its descendants are gone, and then has called release if
// elect had died before. It must be called on the main goroutine.
func Main(args []string, release func(json.RawMessage)) error {
	// The kernel ties PR_SET_PDEATHSIG to the thread that forked.
	runtime.LockOSThread()
	unix.CloseOnExec(ordersFD)
	unix.CloseOnExec(reportsFD)
	outlive()
	if len(args) < 3 {
		return errors.New("a guard is started by elect run only")
	}
	if err := adopt(); err != nil {
		return err
	}
	orders, err := newInbox(ordersFD)
	if err != nil {
		return os.NewSyscallError("guard: the pipe of orders", err)
	}
	w := &warden{
		onLost:  args[0],
		path:    args[1],
		args:    args[2:],
		orders:  orders,
		endings: endings(),
		reports: json.NewEncoder(os.NewFile(reportsFD, "reports")),
	}
	if err := w.guard(); err != nil {
		return err
	}
	if w.inherits() {
		release(w.charge.Release)
	}
	return nil
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

func (w *warden) guard() error {
	early, err := w.begin()
	if err != nil {
		return err
	}
	if boottime.Now() >= w.until { // it was frozen before it came to anything
		w.tell(report{Gone: true, Expired: true})
		return nil
	}
	pid, err := w.start()
	if err != nil {
		var errno syscall.Errno
		if !errors.As(err, &errno) {
			errno = syscall.EINVAL
		}
		w.tell(report{Failed: errno})
		return nil
	}
	w.pid = pid
	w.tell(report{Started: pid})
	w.obey(early...)
	w.watch()
	w.tell(report{Gone: true, Status: w.status, Expired: w.expired, OnLost: w.clean.how})
	return nil
}

// inherits reports whether the guard is to release the lease, since elect is dead. It is
// not to if a process had to be killed, which may have sent something just before, or if
// the command of Spec.OnLost failed, as what it was to stop may run on.
func (w *warden) inherits() bool {
	if !w.orphaned {
		w.listen()
	}
	fine := w.clean.how == "" || w.clean.how == Fine
	return wholeTree && w.orphaned && !w.killed && fine && w.charge.Release != nil
}

// begin waits for the order to start, and returns all that came with it.
func (w *warden) begin() (early []order, _ error) {
	for open := true; open && len(early) == 0; {
		w.orders.await()
		early, open = w.orders.take()
	}
	if len(early) == 0 || early[0].Start == nil {
		return nil, errors.New("guard: no order to start")
	}
	w.charge = *early[0].Start
	w.until = w.charge.Until
	for _, o := range early {
		w.until = max(w.until, o.Until)
	}
	for i := range w.charge.Holds {
		unix.CloseOnExec(holdsFD + i)
	}
	return early, nil
}

// tell reports to elect. When elect is dead there is nobody to tell, and the
// closed orders say so.
func (w *warden) tell(r report) {
	_ = w.reports.Encode(r)
}

func (w *warden) start() (int, error) {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if w.charge.Foreground {
		attr.Foreground, attr.Ctty = true, 0
	}
	DieWithParent(attr)
	return syscall.ForkExec(w.path, w.args, &syscall.ProcAttr{
		Env:   os.Environ(),
		Files: []uintptr{0, 1, 2},
		Sys:   attr,
	})
}

// watch returns when no child is left.
func (w *warden) watch() {
	arrivals := w.orders.arrivals()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for collect(w.note) || w.clean.starts != nil {
		timer.Reset(w.act())
		select {
		case <-arrivals:
			if !w.listen() {
				arrivals = nil
			}
		case <-w.endings:
		case s := <-w.clean.starts:
			w.clean.know(s)
		case <-timer.C:
		}
	}
}

// act does what is due and returns when to look again.
func (w *warden) act() time.Duration {
	if w.termed == 0 && boottime.Now() >= w.until {
		w.listen()
	}
	now := boottime.Now()
	if w.termed == 0 && now >= w.until {
		w.expired = true
		w.terminate()
	}
	due := w.until
	if w.termed != 0 {
		due = min(w.termed, w.until) + w.charge.Grace
		if now >= due {
			w.killed = true
			killAll(w.pid)
			w.clean.kill()
			return again
		}
	}
	return min(due-now, look)
}

// listen obeys the orders that have come. It reports false if there will be no
// more.
func (w *warden) listen() (open bool) {
	orders, open := w.orders.take()
	w.obey(orders...)
	if !open {
		w.orphaned = true
		w.terminate()
	}
	return open
}

func (w *warden) obey(orders ...order) {
	for _, o := range orders {
		if o.Until != 0 {
			w.until = o.Until
		}
		for _, sig := range o.Signals {
			if !w.ended {
				_ = syscall.Kill(-w.pid, sig)
			}
		}
		if o.Stop {
			w.terminate()
		}
	}
}

// terminate asks everybody to end, once. What is to run then has the same time.
func (w *warden) terminate() {
	if w.termed != 0 {
		return
	}
	w.termed = boottime.Now()
	askAll(w.pid)
	if wants(w.onLost, w.ended, w.status) {
		w.clean.begin(w.onLost)
	}
}

func (w *warden) note(pid int, status syscall.WaitStatus) {
	if pid != w.pid {
		w.clean.note(pid, status)
		return
	}
	if status.Stopped() {
		// Ctrl-Z at a terminal that the command has for itself: nobody could
		// ever continue it, and the lease would be kept for nothing.
		if w.charge.Foreground && status.StopSignal() == syscall.SIGTSTP {
			_ = syscall.Kill(-w.pid, syscall.SIGCONT)
		}
		return
	}
	w.status, w.ended = status, true
	w.terminate() // what it left behind
}
