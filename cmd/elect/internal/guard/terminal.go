//go:build unix

package guard

import (
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// HasTerminal reports whether standard input is this process's controlling
// terminal and this process is in its foreground: what it starts in a process
// group of its own could not read from it, unless it gets the foreground too.
func HasTerminal() bool {
	group, err := unix.IoctlGetInt(0, unix.TIOCGPGRP)
	return err == nil && group == syscall.Getpgrp()
}

// TakeTerminal brings this process back into the foreground.
func TakeTerminal() error {
	signal.Ignore(syscall.SIGTTOU) // or it would be stopped for asking from the background
	defer signal.Reset(syscall.SIGTTOU)
	return unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, syscall.Getpgrp())
}
