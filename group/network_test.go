package group_test

import (
	"sync"
	"testing"
	"time"

	"github.com/electkv/election/group"
	"github.com/electkv/election/internal/invitation"
)

// A network carries messages between members in memory, in a testing/synctest bubble. A
// message takes a millisecond, and is lost if lost says so.
type network struct {
	mu    sync.Mutex
	ports map[invitation.ID]*port
	lost  func(from, to string) bool
	sent  int
}

// A port is one member's end.
type port struct {
	net     *network
	id      invitation.ID
	in      chan parcel
	done    chan struct{}
	gone    bool     // guarded by net.mu
	members []string // that it was told last; guarded by net.mu
	closing sync.Once
	all     sync.WaitGroup
}

type parcel struct {
	from invitation.ID
	m    invitation.Message
}

var _ group.Transport = (*port)(nil)

func newNetwork() *network { return &network{ports: map[invitation.ID]*port{}} }

// port returns a new end for a member. Its address leads there from now on.
func (n *network) port(id string) *port {
	p := &port{net: n, id: invitation.ID(id), in: make(chan parcel, 1<<10), done: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ports[p.id] = p
	return p
}

// lose has the network lose what f says from now on. Nil loses nothing.
func (n *network) lose(f func(from, to string) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lost = f
}

// cut has nothing reach a member's present end any more, and nothing leave it.
func (n *network) cut(id string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ports[invitation.ID(id)].gone = true
}

// messages returns how many messages were sent in a time.
func (n *network) messages(d time.Duration) int {
	before := n.total()
	time.Sleep(d)
	return n.total() - before
}

// total returns how many messages were sent.
func (n *network) total() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.sent
}

func (p *port) Listen(deliver func(from invitation.ID, m invitation.Message) error) error {
	p.all.Go(func() {
		for {
			select {
			case got := <-p.in:
				if deliver(got.from, got.m) != nil {
					panic("a member says what it may not say")
				}
			case <-p.done:
				return
			}
		}
	})
	return nil
}

func (p *port) Send(to invitation.ID, m invitation.Message) {
	p.net.mu.Lock()
	defer p.net.mu.Unlock()
	p.net.sent++
	other := p.net.ports[to]
	if other == nil || other.gone || p.gone || p.net.lost != nil && p.net.lost(string(p.id), string(to)) {
		return
	}
	time.AfterFunc(time.Millisecond, func() {
		select {
		case other.in <- parcel{p.id, m}:
		default:
		}
	})
}

func (p *port) SetMembers(addrs []string) error {
	p.net.mu.Lock()
	defer p.net.mu.Unlock()
	p.members = addrs
	return nil
}

// knows returns the members that a process was told of last.
func (n *network) knows(id string) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ports[invitation.ID(id)].members
}

func (p *port) Flush() {}

func (p *port) Close() error {
	p.closing.Do(func() { close(p.done) })
	p.all.Wait()
	return nil
}

// parts returns what is lost between parts of the network, of which it is given all but one.
func parts(some ...[]string) func(from, to string) bool {
	part := map[string]int{}
	for i, ids := range some {
		for _, id := range ids {
			part[id] = i + 1
		}
	}
	return func(from, to string) bool { return part[from] != part[to] }
}

// A cluster is members on one network, in fake time.
type cluster struct {
	testing.TB
	chronicle
	net    *network
	opts   group.Options
	all    map[string]*actor
	starts uint64
}
