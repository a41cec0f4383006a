//go:build unix

package testenv

import (
	"context"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// A link is one connection through a [Proxy].
type link struct {
	proxy  *Proxy
	client *net.TCPConn
	ctx    context.Context // ends when the link is closed
	close  context.CancelFunc
	flows  streams

	// guarded by proxy.mu
	seen Connection
	lost [2]bool // by direction: the stream has a hole
	// muted is set if something was lost on a stream within the stream.
	muted bool
}

// A chunk is a piece of a stream, or, without data, its end.
type chunk struct {
	data []byte
	read time.Time
	luck float64 // in [0, 1)
}

// backlog is how many chunks a link holds back in one direction before it stops
// to read.
const backlog = 1024

func newLink(p *Proxy, client net.Conn) *link {
	l := &link{proxy: p, client: client.(*net.TCPConn), seen: Connection{Opened: time.Now()}}
	l.ctx, l.close = context.WithCancel(context.Background())
	return l
}

// suffer lets the link feel the fault that it has now. The caller holds
// proxy.mu.
func (l *link) suffer(f fault) {
	switch {
	case f.resets:
		// Closed like this, it is reset. An error means that it has ended.
		_ = l.client.SetLinger(0)
		l.close()
	case !l.survives(f):
		l.close()
	case f.ends && !l.lost[reply]:
		l.lost[reply] = true
		_ = l.client.CloseWrite() // an error means that it has ended
	}
}

// survives reports whether the link can go on under f: not if something would
// pass in a direction that has lost something.
func (l *link) survives(f fault) bool {
	if f.cut || l.muted && f.mutes == nil {
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
		if l.wait(reply, chunk{read: time.Now()}, time.Time{}) < 0 {
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

	var sent time.Time
	for {
		var c chunk
		select {
		case c = <-chunks:
		case <-l.ctx.Done():
			return
		}
		if c.data != nil {
			if d == request {
				l.meet(c.data)
			}
			c.data = l.flows.pass(d, c.data, func(asked []byte) bool { return l.proxy.mutes(l, asked) })
		}
		for end := c.data == nil; end || len(c.data) > 0; sent = time.Now() {
			n := l.wait(d, c, sent)
			if n < 0 {
				break
			}
			if err := c.write(to, n); err != nil {
				l.close()
				return
			}
			if end {
				return
			}
			c.data = c.data[n:]
		}
	}
}

// meet does with a request what is to be done before it is forwarded.
func (l *link) meet(data []byte) {
	if onRequest := l.proxy.meet(l, data); onRequest != nil {
		onRequest(data)
	}
	if !l.proxy.repeats(l, data) {
		return
	}
	if err := l.repeat(data); err != nil && l.ctx.Err() == nil {
		l.proxy.t.Errorf("testenv: proxy to %s: replay: %v", l.proxy.upstream, err)
	}
}

// repeat sends a request on a connection of its own, and waits until the server
// has answered.
func (l *link) repeat(data []byte) error {
	ctx, cancel := context.WithTimeout(l.ctx, 10*time.Second)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", l.proxy.upstream)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if _, err := conn.Write(data); err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 1))
	return err
}

// read sends what comes from one side, and the end of the stream, to chunks.
func (l *link) read(from net.Conn, chunks chan<- chunk) {
	for {
		data := make([]byte, 16<<10)
		n, err := from.Read(data)
		if n > 0 && !l.send(chunks, chunk{data: data[:n], read: time.Now(), luck: rand.Float64()}) {
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

// wait holds back a chunk as long as the fault says, if the piece before was
// sent at the given time. It returns how many bytes may pass, or a negative
// number if the chunk is not to be forwarded.
func (l *link) wait(d direction, c chunk, sent time.Time) int {
	for {
		v := l.proxy.judge(l, d, c, sent)
		if v.drop || l.ctx.Err() != nil {
			return -1
		}
		if v.wait <= 0 {
			return v.piece
		}
		timer := time.NewTimer(v.wait)
		select {
		case <-timer.C:
		case <-v.changed:
		case <-l.ctx.Done():
		}
		timer.Stop()
	}
}

// write forwards n bytes of the chunk, or the end of the stream.
func (c chunk) write(to net.Conn, n int) error {
	if c.data == nil {
		return to.(*net.TCPConn).CloseWrite()
	}
	_, err := to.Write(c.data[:n])
	return err
}
