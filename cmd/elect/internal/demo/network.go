//go:build unix

package demo

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

// A network carries the connections between the processes of a demo, and is parted when it is
// told to. The processes are known by numbers, those of their places in a list. What is sent to
// where it does not reach waits, as packets do that are sent again, and arrives as soon as the
// network is whole.
type network struct {
	listener net.Listener
	ctx      context.Context // it ends the network
	end      context.CancelFunc
	all      sync.WaitGroup

	mu      sync.Mutex
	homes   map[int]string // where each process listens
	parts   [][]int
	changed chan struct{} // closed when parts change, and another one from then on
}

// callTime is how long a caller may take to say who it is, and how long a call may take.
const callTime = 5 * time.Second

// openNetwork opens one in which nobody reaches anybody.
func openNetwork(ctx context.Context) (*network, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	n := &network{listener: listener, homes: map[int]string{}, changed: make(chan struct{})}
	n.ctx, n.end = context.WithCancel(ctx)
	n.all.Go(n.accept)
	return n, nil
}

// callOver connects with a process over the network at an address.
func callOver(ctx context.Context, network string, from, to int) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", network)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Write([]byte{byte(from), byte(to)}); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

func (n *network) addr() string { return n.listener.Addr().String() }

// place says where a process listens.
func (n *network) place(who int, addr string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.homes[who] = addr
}

// part has processes reach each other only within a part.
func (n *network) part(parts [][]int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.parts = parts
	close(n.changed)
	n.changed = make(chan struct{})
}

// close ends it, and all that it carries.
func (n *network) close() error {
	n.end()
	err := n.listener.Close()
	n.all.Wait()
	return err
}

func (n *network) accept() {
	for {
		conn, err := n.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // no file is left, say
			time.Sleep(10 * time.Millisecond)
			continue
		}
		n.all.Go(func() { n.carry(conn) })
	}
}

// carry carries a connection to where it is meant to go.
func (n *network) carry(caller net.Conn) {
	defer caller.Close()
	defer context.AfterFunc(n.ctx, func() { caller.Close() })()
	var ends [2]byte
	if caller.SetDeadline(time.Now().Add(callTime)) != nil {
		return
	}
	if _, err := io.ReadFull(caller, ends[:]); err != nil || caller.SetDeadline(time.Time{}) != nil {
		return
	}
	from, to := int(ends[0]), int(ends[1])
	if !n.pass(from, to) {
		return
	}
	n.mu.Lock()
	home := n.homes[to]
	n.mu.Unlock()
	callee, err := (&net.Dialer{Timeout: callTime}).DialContext(n.ctx, "tcp", home)
	if err != nil {
		return // it is not there: the caller sees the end of the connection
	}
	defer callee.Close()
	defer context.AfterFunc(n.ctx, func() { callee.Close() })()
	both := func() { caller.Close(); callee.Close() }
	var back sync.WaitGroup
	back.Go(func() {
		defer both()
		n.flow(caller, callee, to, from)
	})
	n.flow(callee, caller, from, to)
	both()
	back.Wait()
}

// flow hands on what one side sends, and returns when it has come to its end on the other one.
func (n *network) flow(dst io.Writer, src io.Reader, from, to int) {
	for buf := make([]byte, 32<<10); ; {
		k, err := src.Read(buf)
		if !n.pass(from, to) {
			return
		}
		if _, lost := dst.Write(buf[:k]); err != nil || lost != nil {
			return
		}
	}
}

// pass waits until one process reaches another, and reports false if the network ended first.
func (n *network) pass(from, to int) bool {
	for {
		n.mu.Lock()
		reaches, changed := n.reaches(from, to), n.changed
		n.mu.Unlock()
		if reaches {
			return true
		}
		select {
		case <-changed:
		case <-n.ctx.Done():
			return false
		}
	}
}

// reaches reports whether two processes are in one part. Each reaches itself. The mutex is held.
func (n *network) reaches(from, to int) bool {
	for _, part := range n.parts {
		has := map[int]bool{}
		for _, who := range part {
			has[who] = true
		}
		if has[from] && has[to] {
			return true
		}
	}
	return from == to
}
