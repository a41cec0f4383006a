//go:build unix

package guard

import (
	"bytes"
	"encoding/json"

	"golang.org/x/sys/unix"
)

// An inbox is the guard's end of the pipe of orders. Only the goroutine that acts
// on them reads it, so that it can look for a newer order before it acts on the
// lack of one: a guard that was stopped finds its orders when it goes on.
type inbox struct {
	fd   int
	part []byte // of a line
}

func newInbox(fd int) (*inbox, error) {
	return &inbox{fd: fd}, unix.SetNonblock(fd, true)
}

// take returns the orders that have come, without waiting for any. It reports false
// if there will be no more: elect is dead, or what it says cannot be read.
func (in *inbox) take() (orders []order, open bool) {
	buf := make([]byte, 4096)
	for {
		n, err := unix.Read(in.fd, buf)
		switch {
		case err == unix.EINTR:
			continue
		case err == unix.EAGAIN:
			return orders, true
		case err != nil || n == 0:
			return orders, false
		}
		in.part = append(in.part, buf[:n]...)
		for {
			line, rest, whole := bytes.Cut(in.part, []byte("\n"))
			if !whole {
				break
			}
			in.part = rest
			if len(line) == 0 {
				continue
			}
			var o order
			if json.Unmarshal(line, &o) != nil {
				return orders, false
			}
			orders = append(orders, o)
		}
	}
}

// await waits until there is something to take.
func (in *inbox) await() {
	fds := []unix.PollFd{{Fd: int32(in.fd), Events: unix.POLLIN}} //nolint:gosec // a descriptor is small
	for {
		if _, err := unix.Poll(fds, -1); err != unix.EINTR {
			return
		}
	}
}

// arrivals gets a value whenever there is something to take, until nobody receives
// any more.
func (in *inbox) arrivals() <-chan struct{} {
	arrivals := make(chan struct{})
	go func() {
		for {
			in.await()
			arrivals <- struct{}{}
		}
	}()
	return arrivals
}
