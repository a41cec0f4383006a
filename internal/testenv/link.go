//go:build unix

package testenv

import (
	"context"
	"net"
	"sync"
	"time"
)

// A link is one connection through a [Proxy].
type link struct {
	proxy  *Proxy
	lost   [2]bool // by direction: the stream has a hole. Guarded by proxy.mu
	client net.Conn
	ctx    context.Context // ends when the link is closed
	close  context.CancelFunc
}

// A chunk is a piece of a stream, or, without data, its end.
type chunk struct {
	data []byte
	read time.Time
}

// backlog is how many chunks a link holds back in one direction before it stops
// to read.
const backlog = 1024

func newLink(p *Proxy, client net.Conn) *link {
	l := &link{proxy: p, client: client}
	l.ctx, l.close = context.WithCancel(context.Background())
	return l
}

// survives reports whether the link can go on under f: not if something would
// pass in a direction that has lost something. The caller holds proxy.mu.
func (l *link) survives(f fault) bool {
	if f.cut {
		return false
	}
	for d, lost := range l.lost {
		if lost && !f.drops[d] {
			return false
		}
	}
	return true
}

// run forwards both ways until both have ended or the link is closed.
func (l *link) run() {
	defer l.client.Close()
	defer l.close()
	server, err := new(net.Dialer).DialContext(l.ctx, "tcp", l.proxy.upstream)
	if err != nil {
		// The news that the server is down travels like a reply.
		if !l.wait(reply, time.Now()) {
			<-l.ctx.Done()
		}
		return
	}

	var ways, closer sync.WaitGroup
	closer.Go(func() {
		<-l.ctx.Done()
		l.client.Close()
		server.Close()
	})
	ways.Go(func() { l.forward(request, server, l.client) })
	ways.Go(func() { l.forward(reply, l.client, server) })
	ways.Wait()
	l.close()
	closer.Wait()
}

// forward carries bytes, and the end of the stream, from one side to the other.
func (l *link) forward(d direction, to, from net.Conn) {
	chunks := make(chan chunk, backlog)
	var reader sync.WaitGroup
	defer reader.Wait()
	reader.Go(func() { l.read(from, chunks) })

	for {
		var c chunk
		select {
		case c = <-chunks:
		case <-l.ctx.Done():
			return
		}
		if !l.wait(d, c.read) {
			continue
		}
		if err := c.write(to); err != nil {
			l.close()
			return
		}
		if c.data == nil {
			return
		}
	}
}

// read sends what comes from one side, and the end of the stream, to chunks.
func (l *link) read(from net.Conn, chunks chan<- chunk) {
	for {
		data := make([]byte, 16<<10)
		n, err := from.Read(data)
		if n > 0 && !l.send(chunks, chunk{data: data[:n], read: time.Now()}) {
			return
		}
		if err != nil {
			l.send(chunks, chunk{read: time.Now()})
			return
		}
	}
}

func (l *link) send(chunks chan<- chunk, c chunk) bool {
	select {
	case chunks <- c:
		return true
	case <-l.ctx.Done():
		return false
	}
}

// wait holds back what was read at a time, as long as the fault says. It reports
// false if that is not to be forwarded.
func (l *link) wait(d direction, read time.Time) bool {
	for {
		drop, rest, changed := l.proxy.judge(l, d, read)
		if drop {
			return false
		}
		if rest <= 0 {
			return l.ctx.Err() == nil
		}
		timer := time.NewTimer(rest)
		select {
		case <-timer.C:
		case <-changed:
		case <-l.ctx.Done():
		}
		timer.Stop()
		if l.ctx.Err() != nil {
			return false
		}
	}
}

// write forwards the chunk.
func (c chunk) write(to net.Conn) error {
	if c.data == nil {
		return to.(*net.TCPConn).CloseWrite()
	}
	_, err := to.Write(c.data)
	return err
}
