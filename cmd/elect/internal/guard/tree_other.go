//go:build unix && !linux

package guard

import "syscall"

// wholeTree is false: who has left the process group may go on.
const wholeTree = false

func adopt() error { return nil }

// DieWithParent does nothing: it takes Linux to tie a process to its parent.
func DieWithParent(*syscall.SysProcAttr) {}

// everybody returns nobody: who has left the process group is not found here.
func everybody() []int { return nil }

// signalAll signals the process group.
func signalAll(group int, _ []int, sig syscall.Signal) {
	if group > 0 {
		_ = syscall.Kill(-group, sig)
	}
}
