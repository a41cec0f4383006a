//go:build unix

package guard

import (
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// A Parent is this process as the parent of guards, of what a dead guard leaves
// behind, and, where it is the first process of a container, of every orphan there.
// It collects all children that end, so nothing else in this process may start one
// and wait for it.
type Parent struct {
	endings chan os.Signal
	closed  chan struct{}
	work    sync.WaitGroup

	mu     sync.Mutex // for starting and collecting children, and for signals to them
	guards map[int]chan<- syscall.WaitStatus
}

// Adopt makes this process a Parent: should a guard die, its descendants become
// this process's own. It fails where they could not be found: on Linux, if /proc
// is not that of this process's PID namespace.
func Adopt() (*Parent, error) {
	if err := adopt(); err != nil {
		return nil, err
	}
	p := &Parent{endings: endings(), closed: make(chan struct{}), guards: map[int]chan<- syscall.WaitStatus{}}
	p.work.Go(func() {
		for {
			p.collect()
			select {
			case <-p.endings:
			case <-p.closed:
				return
			}
		}
	})
	return p, nil
}

// Close ends the collecting of children.
func (p *Parent) Close() {
	signal.Stop(p.endings)
	close(p.closed)
	p.work.Wait()
}

// collect takes the children that have ended.
func (p *Parent) collect() (left bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return collect(p.note)
}

func (p *Parent) note(pid int, status syscall.WaitStatus) {
	if ended, ok := p.guards[pid]; ok && !status.Stopped() {
		delete(p.guards, pid)
		ended <- status
	}
}

// spawn starts a guard. How it ends comes from the channel.
func (p *Parent) spawn(path string, args []string, attr *syscall.ProcAttr) (pid int, _ <-chan syscall.WaitStatus, _ error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pid, err := syscall.ForkExec(path, args, attr)
	if err != nil {
		return 0, nil, fmt.Errorf("start a guard: %w", err)
	}
	ended := make(chan syscall.WaitStatus, 1)
	p.guards[pid] = ended
	return pid, ended, nil
}

// signal sends a signal to a guard, unless it has ended.
func (p *Parent) signal(pid int, sig syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.guards[pid] != nil {
		_ = syscall.Kill(pid, sig) // a child that was not collected is there
	}
}

// sweep kills what a dead guard has left to this process, until nobody is left.
func (p *Parent) sweep(group int) {
	round := time.NewTicker(again)
	defer round.Stop()
	for p.strike(group) {
		<-round.C
	}
}

// strike kills every descendant, and reports whether one is left.
func (p *Parent) strike(group int) (left bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	killAll(group)
	return collect(p.note)
}
