//go:build unix

package testenv

import (
	"net"
	"sync"
	"testing"
	"time"
)

// A Proxy stands between clients and one server, and breaks the network on
// demand. It has one fault at a time: each of Cut, BlackHole, DropReplies,
// DropRequests, Delay and Heal takes the place of the one before. A fault
// applies to the connections that exist and to new ones, and to all bytes that
// are sent after the call has returned.
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

	mu       sync.Mutex
	fault    fault
	changed  chan struct{} // closed when fault changes
	listener net.Listener  // nil while cut
	links    map[*link]struct{}
	ended    bool
}

// A fault is what is wrong with the network. The zero fault is none.
type fault struct {
	cut   bool
	drops [2]bool // by direction
	delay time.Duration
}

// A direction is one of the two in which bytes go.
type direction int

const (
	request direction = iota // from the client to the server
	reply                    // from the server to the client
)

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
		links:    make(map[*link]struct{}),
	}
	t.Cleanup(p.end)
	p.Heal()
	return p
}

// Addr returns the address at which the proxy listens, as host:port. It stays
// the same, whatever the fault.
func (p *Proxy) Addr() string { return p.port.addr() }

// Cut closes all connections and refuses new ones.
func (p *Proxy) Cut() { p.t.Helper(); p.set(fault{cut: true}) }

// BlackHole accepts connections and forwards nothing, neither bytes nor the end
// of a connection, either way.
func (p *Proxy) BlackHole() {
	p.t.Helper()
	p.set(fault{drops: [2]bool{request: true, reply: true}})
}

// DropReplies lets requests pass and loses what the server sends.
func (p *Proxy) DropReplies() { p.t.Helper(); p.set(fault{drops: [2]bool{reply: true}}) }

// DropRequests loses what the client sends and lets replies pass: the ones on
// their way, and what the server sends unasked.
func (p *Proxy) DropRequests() { p.t.Helper(); p.set(fault{drops: [2]bool{request: true}}) }

// Delay holds everything back for d, in each direction: a round trip takes 2d
// longer.
func (p *Proxy) Delay(d time.Duration) { p.t.Helper(); p.set(fault{delay: d}) }

// Heal ends every fault.
func (p *Proxy) Heal() { p.t.Helper(); p.set(fault{}) }

// set puts f in the place of the present fault.
func (p *Proxy) set(f fault) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	if err := p.setLocked(f); err != nil {
		p.t.Errorf("testenv: proxy to %s: %v", p.upstream, err)
	}
}

func (p *Proxy) setLocked(f fault) error {
	p.fault = f
	close(p.changed)
	p.changed = make(chan struct{})
	for l := range p.links {
		if !l.survives(f) {
			l.close()
		}
	}
	switch {
	case f.cut && p.listener != nil:
		err := p.listener.Close()
		p.listener = nil
		return err
	case !f.cut && p.listener == nil:
		listener, err := net.Listen("tcp4", p.Addr())
		if err != nil {
			return err
		}
		p.listener = listener
		p.wg.Go(func() { p.accept(listener) })
	}
	return nil
}

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
	return true
}

func (p *Proxy) remove(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

// judge says what becomes now of something that l read at a time in direction
// d: whether it is dropped, which l then remembers, or else how long it has to
// wait. The channel tells when to ask again.
func (p *Proxy) judge(l *link, d direction, read time.Time) (drop bool, wait time.Duration, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault.drops[d] {
		l.lost[d] = true
		return true, 0, nil
	}
	return false, time.Until(read.Add(p.fault.delay)), p.changed
}
