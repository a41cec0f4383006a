//go:build unix

package testenv

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// A family is a process and its children, which do the work: PostgreSQL has one
// for each connection. To stop or to kill the parent alone would stop nothing.

// stopFamily stops a process, so that there will be no more children, and then
// the children that it has; it returns when all stand still.
func stopFamily(pid int) error {
	if err := stopProcess(pid); err != nil {
		return err
	}
	all, err := children(pid)
	if err != nil {
		return err
	}
	for _, child := range all {
		if err := stopProcess(child); err != nil {
			return err
		}
	}
	return nil
}

// resumeFamily lets a process, and the children that it has, go on.
func resumeFamily(pid int) error {
	all, err := children(pid)
	if err != nil {
		return err
	}
	return signalAll(append(all, pid), syscall.SIGCONT)
}

// killFamily kills a process and its children, and waits until the children are
// gone. The process itself is left to whoever waits for it.
func killFamily(pid int) error {
	if err := stopProcess(pid); err != nil {
		return err
	}
	all, err := children(pid)
	if err != nil {
		return err
	}
	if err := signalAll(append(all, pid), syscall.SIGKILL); err != nil {
		return err
	}
	return awaitStates(all, gone)
}

func stopProcess(pid int) error {
	if err := signalAll([]int{pid}, syscall.SIGSTOP); err != nil {
		return err
	}
	return awaitStates([]int{pid}, still)
}

// signalAll sends a signal to those of the processes that are there.
func signalAll(pids []int, signal syscall.Signal) error {
	for _, pid := range pids {
		if err := syscall.Kill(pid, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return os.NewSyscallError("kill", err)
		}
	}
	return nil
}

// gone and still tell the states of processes, by the letters of ps(1); a process
// that is not there has none.
func gone(state string) bool  { return state == "" || state == "Z" || state == "X" }
func still(state string) bool { return gone(state) || state == "T" || state == "t" }

// awaitStates waits until every one of the processes is in a state.
func awaitStates(pids []int, in func(state string) bool) error {
	end := time.Now().Add(30 * time.Second)
	for _, pid := range pids {
		for !in(processState(pid)) {
			if time.Now().After(end) {
				return fmt.Errorf("process %d is in state %q after 30 s", pid, processState(pid))
			}
			time.Sleep(time.Millisecond)
		}
	}
	return nil
}
