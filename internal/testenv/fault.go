//go:build unix

package testenv

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"
)

// A fault is what is wrong with the network. The zero fault is none.
type fault struct {
	cut         bool
	resets      bool
	drops       [2]bool           // by direction
	ends        bool              // the replies have ended
	least, most [2]time.Duration  // for how long pieces are held back
	piece       int               // how many bytes pass at a time, if not 0
	pause       time.Duration     // after each of these pieces
	twice       func([]byte) bool // requests that the server gets twice
	mutes       func([]byte) bool // streams on which the server is not heard
}

// A direction is one of the two in which bytes go.
type direction int

const (
	request direction = iota // from the client to the server
	reply                    // from the server to the client
)

// forever is longer than any test.
const forever = 1000 * time.Hour

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

// Reset ends every connection by a reset (RST) to the client, and every new one
// as soon as it has been accepted.
func (p *Proxy) Reset() { p.t.Helper(); p.set(fault{resets: true}) }

// HalfClose ends the replies of every connection: the client reads the end of
// the stream. What the client sends still passes.
func (p *Proxy) HalfClose() {
	p.t.Helper()
	p.set(fault{ends: true, drops: [2]bool{reply: true}})
}

// Delay holds everything back for d, in each direction: a round trip takes 2d
// longer.
func (p *Proxy) Delay(d time.Duration) { p.t.Helper(); p.DelayBetween(d, d) }

// DelayBetween holds everything back, in each direction, each piece for a time
// of its own, from least to most at random. The order is kept.
func (p *Proxy) DelayBetween(least, most time.Duration) {
	p.t.Helper()
	p.set(fault{least: [2]time.Duration{least, least}, most: [2]time.Duration{most, most}})
}

// DelayReplies holds back what the server sends for d.
func (p *Proxy) DelayReplies(d time.Duration) {
	p.t.Helper()
	p.set(fault{least: [2]time.Duration{reply: d}, most: [2]time.Duration{reply: d}})
}

// HoldReplies lets requests pass and holds back what the server sends until
// Heal, which lets it pass. See AwaitHeld.
func (p *Proxy) HoldReplies() { p.t.Helper(); p.DelayReplies(forever) }

// Trickle lets n bytes pass at a time, in each direction, and pauses after
// them: streams arrive in slices, and n bytes a pause is the bandwidth.
func (p *Proxy) Trickle(n int, pause time.Duration) {
	p.t.Helper()
	p.set(fault{piece: n, pause: pause})
}

// Replay sends each request that matches to the server twice: first on a
// connection of its own, where the answer is awaited and thrown away, and then
// as usual. So the client sees the answer to the second, as after a retry that
// it knows nothing of. A request is what is read at a time: small ones are whole
// in Redis's protocol and in HTTP/1. It fails the test if a request cannot be
// repeated. It is not for protocols whose connections have a state that the
// request needs: gRPC, or Redis with a password.
func (p *Proxy) Replay(match func(request []byte) bool) {
	p.t.Helper()
	p.set(fault{twice: match})
}

// MuteStreams loses what the server sends on some of a connection's streams, and
// lets all else pass: the watch is dead in silence, and the connection lives. It
// is for gRPC, and for streams on which the client may ask more than once:
// etcd's watches, for which match sees what was asked on the stream so far, keys
// as they are. It must be quick and not call the proxy. Where something was
// lost, the connection is closed when the fault ends.
func (p *Proxy) MuteStreams(match func(asked []byte) bool) {
	p.t.Helper()
	p.set(fault{mutes: match})
}

// Heal ends every fault. It leaves Affect and OnRequest as they are.
func (p *Proxy) Heal() { p.t.Helper(); p.set(fault{}) }

// A Connection is what [Proxy.Affect] knows of one.
type Connection struct {
	Opened time.Time // when the proxy accepted it
	First  []byte    // what the client sent first, at most 4 KiB of it
	Last   []byte    // what the client sent last, at most 4 KiB of it
}

// Affect restricts the fault, and those to come, to the connections for which
// which reports true; nil stands for all. Any connection may be asked about
// again as it goes on. All the same, Cut refuses all new ones. The function must
// be quick and not call the proxy.
//
// Subscriptions to Redis have connections of their own, whose Last contains
// "subscribe"; the Last of one with a blocking query of Consul's contains
// "index=". etcd's client has one connection for all: see MuteStreams.
func (p *Proxy) Affect(which func(Connection) bool) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.affects = which
	p.changedLocked()
}

// OnRequest has f called with what a client sends, before the fault is looked
// at: f may change the fault for this request, or for the reply to it. What is
// read at a time is a whole request, if that is small. Connections call f at the
// same time as each other. nil ends it.
func (p *Proxy) OnRequest(f func(request []byte)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.onRequest = f
}

// AwaitHeld waits until the present fault holds back bytes that the server has
// sent: it has carried out the request by then, and the client does not know.
// It returns ctx's error if that ends before.
func (p *Proxy) AwaitHeld(ctx context.Context) error {
	p.mu.Lock()
	held := p.held
	p.mu.Unlock()
	select {
	case <-held:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// set puts f in the place of the present fault.
func (p *Proxy) set(f fault) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	p.fault, p.held = f, make(chan struct{})
	p.changedLocked()
	if err := p.listen(); err != nil {
		p.t.Errorf("testenv: proxy to %s: %v", p.upstream, err)
	}
}

// changedLocked makes all connections feel that the fault, or whom it affects,
// has changed.
func (p *Proxy) changedLocked() {
	close(p.changed)
	p.changed = make(chan struct{})
	for l := range p.links {
		l.suffer(p.faultOf(l))
	}
}

// listen accepts connections, or refuses them if they are cut.
func (p *Proxy) listen() error {
	switch {
	case p.fault.cut && p.listener != nil:
		err := p.listener.Close()
		p.listener = nil
		return err
	case !p.fault.cut && p.listener == nil:
		listener, err := listenAgain(p.Addr())
		if err != nil {
			return err
		}
		p.listener = listener
		p.wg.Go(func() { p.accept(listener) })
	}
	return nil
}

// listenAgain listens at an address at which this process has just ceased to listen. A process that it
// starts meanwhile has the old listener too, until it executes its program.
func listenAgain(addr string) (net.Listener, error) {
	for late := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		listener, err := net.Listen("tcp4", addr)
		if !errors.Is(err, syscall.EADDRINUSE) || time.Now().After(late) {
			return listener, err
		}
	}
}

// faultOf returns the fault that the link has. The caller holds p.mu.
func (p *Proxy) faultOf(l *link) fault {
	if p.affects != nil && !p.affects(l.seen) {
		return fault{}
	}
	return p.fault
}

// A verdict is what becomes of a chunk for now.
type verdict struct {
	drop    bool            // it is lost
	wait    time.Duration   // it has to wait
	piece   int             // or so many bytes of it may pass
	changed <-chan struct{} // tells when to ask again
}

// judge says what becomes now of a chunk in direction d of l, which remembers
// what it loses. The piece before has been sent at the given time.
func (p *Proxy) judge(l *link, d direction, c chunk, sent time.Time) verdict {
	p.mu.Lock()
	defer p.mu.Unlock()
	f := p.faultOf(l)
	l.suffer(f)
	if f.drops[d] {
		l.lost[d] = true
		return verdict{drop: true}
	}
	v := verdict{piece: len(c.data), changed: p.changed}
	held := f.least[d] + time.Duration(c.luck*float64(f.most[d]-f.least[d]))
	v.wait = time.Until(c.read.Add(held))
	if f.piece > 0 {
		v.piece = min(v.piece, f.piece)
		v.wait = max(v.wait, time.Until(sent.Add(f.pause)))
	}
	if d == reply && v.wait > 0 && c.data != nil {
		select {
		case <-p.held:
		default:
			close(p.held)
		}
	}
	return v
}

// meet takes down a request and tells what is to be done with it first.
func (p *Proxy) meet(l *link, data []byte) (onRequest func([]byte)) {
	const most = 4 << 10
	p.mu.Lock()
	defer p.mu.Unlock()
	l.seen.First = append(l.seen.First, data[:min(len(data), most-len(l.seen.First))]...)
	l.seen.Last = data[:min(len(data), most)]
	return p.onRequest
}

// repeats reports whether the server is to get a request twice.
func (p *Proxy) repeats(l *link, data []byte) bool {
	p.mu.Lock()
	twice := p.faultOf(l).twice
	p.mu.Unlock()
	return twice != nil && twice(data)
}

// mutes reports whether the answers to what was asked on a stream of the link
// are lost, and remembers that they are.
func (p *Proxy) mutes(l *link, asked []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	mutes := p.faultOf(l).mutes
	if mutes == nil || !mutes(asked) {
		return false
	}
	l.muted = true
	return true
}
