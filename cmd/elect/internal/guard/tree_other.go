//go:build unix && !linux

package guard

import "syscall"

// wholeTree is false: who has left the process group may go on.
const wholeTree = false

func adopt() error { return nil }

// DieWithParent does nothing: it takes Linux to tie a process to its parent.
func DieWithParent(*syscall.SysProcAttr) {}

// signalAll signals the process group; who left it is not found here.
func signalAll(group int, sig syscall.Signal) {
	if group > 0 {
		_ = syscall.Kill(-group, sig)
	}
}
