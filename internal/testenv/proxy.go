//go:build unix

package testenv

import (
	"net"
	"sync"
	"testing"
)

// A Proxy stands between clients and one server, and breaks the network on
// demand. It has one fault at a time: each call that makes a fault, or Heal,
// takes the place of the one before. A fault applies to the connections that
// exist and to new ones, unless Affect says to which, and to all bytes that are
// sent after the call has returned.
//
// What a fault swallows is not made up for. As soon as bytes would pass again
// in a direction in which some were lost, or the end of the stream was, the
// connection is closed, since the stream has a hole. A connection on which
// nothing was lost goes on.
//
// The methods may be called from any goroutine.
type Proxy struct {
	t        testing.TB
	upstream string
	port     *port
	wg       sync.WaitGroup // accept loops and links

	mu        sync.Mutex
	fault     fault
	affects   func(Connection) bool // nil for all
	onRequest func([]byte)          // nil for nothing
	changed   chan struct{}         // closed when fault or affects change
	held      chan struct{}         // closed when a reply is held back by the fault
	listener  net.Listener          // nil while cut
	links     map[*link]struct{}
	ended     bool
}

// NewProxy starts a proxy in front of upstream, host:port. It ends with the
// test, and all its connections do.
func NewProxy(t testing.TB, upstream string) *Proxy {
	t.Helper()
	port, err := takePort()
	if err != nil {
		t.Fatalf("testenv: %v", err)
	}
	p := &Proxy{
		t:        t,
		upstream: upstream,
		port:     port,
		changed:  make(chan struct{}),
		held:     make(chan struct{}),
		links:    make(map[*link]struct{}),
	}
	t.Cleanup(p.end)
	p.Heal()
	return p
}

// Addr returns the address at which the proxy listens, as host:port. It stays
// the same, whatever the fault.
func (p *Proxy) Addr() string { return p.port.addr() }

// end closes everything and waits until it is gone.
func (p *Proxy) end() {
	p.Cut()
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	p.wg.Wait()
	p.port.release()
}

// accept serves connections until the listener is closed.
func (p *Proxy) accept(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		l := newLink(p, client)
		if !p.add(l, listener) {
			l.close()
			client.Close()
			return
		}
		p.wg.Go(func() {
			defer p.remove(l)
			l.run()
		})
	}
}

// add puts the link under the proxy's faults, unless the proxy was cut after
// listener had accepted the connection.
func (p *Proxy) add(l *link, listener net.Listener) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listener != listener {
		return false
	}
	p.links[l] = struct{}{}
	l.suffer(p.faultOf(l))
	return true
}

func (p *Proxy) remove(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}
