package paxoskv_test

import (
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	paxoskv "github.com/electkv/election/backends/paxos"
	"github.com/electkv/election/backends/paxos/internal/lease"
)

// A network carries messages between members in memory, in a testing/synctest
// bubble, and loses those that lost says.
type network struct {
	mu    sync.Mutex
	ports map[lease.MemberID]*port
	lost  func(from, to lease.MemberID) bool
	delay func() time.Duration

	sent     atomic.Int64 // messages
	requests atomic.Int64 // messages that went to all members, each counted once
}

// A port is one member's end.
type port struct {
	net     *network
	id      lease.MemberID
	in      chan parcel
	done    chan struct{}
	closing sync.Once
	all     sync.WaitGroup
}

type parcel struct {
	from lease.MemberID
	m    lease.Message
}

func newNetwork() *network { return &network{ports: map[lease.MemberID]*port{}} }

// port returns a new end for a member. Its address leads there from now on.
func (n *network) port(id lease.MemberID) *port {
	p := &port{net: n, id: id, in: make(chan parcel, 1<<12), done: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ports[id] = p
	return p
}

// lose has the network lose what f says from now on. Nil loses nothing.
func (n *network) lose(f func(from, to lease.MemberID) bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lost = f
}

// slow has each message take its own time, as f says.
func (n *network) slow(f func() time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.delay = f
}

func (p *port) Listen(deliver func(from lease.MemberID, m lease.Message)) error {
	p.all.Go(func() {
		for {
			select {
			case got := <-p.in:
				deliver(got.from, got.m)
			case <-p.done:
				return
			}
		}
	})
	return nil
}

func (p *port) Send(to lease.MemberID, m lease.Message) {
	p.net.mu.Lock()
	defer p.net.mu.Unlock()
	other := p.net.ports[to]
	if other == nil || p.net.lost != nil && p.net.lost(p.id, to) {
		return
	}
	p.net.sent.Add(1)
	switch m.(type) {
	case lease.Query, lease.Prepare, lease.Propose:
		if to == p.id { // each goes to all members, so to oneself
			p.net.requests.Add(1)
		}
	}
	arrive := func() {
		select {
		case other.in <- parcel{p.id, m}:
		default:
		}
	}
	if p.net.delay == nil {
		arrive()
		return
	}
	time.AfterFunc(p.net.delay(), arrive)
}

func (p *port) Close() error {
	p.closing.Do(func() { close(p.done) })
	p.all.Wait()
	return nil
}

// A cluster is members on one network.
type cluster struct {
	testing.TB
	net     *network
	ids     []string
	members []*paxoskv.Store
	opts    paxoskv.Options
	dirs    []string // of the members, if they have any
	slept   atomic.Int64
	starts  uint64
}

// newCluster starts n members, which wait out their quarantine.
func newCluster(t testing.TB, n int, opts paxoskv.Options) *cluster {
	c := &cluster{TB: t, net: newNetwork(), members: make([]*paxoskv.Store, n), opts: opts}
	for i := range n {
		c.ids = append(c.ids, fmt.Sprintf("member-%d", i))
	}
	for i := range n {
		c.start(i)
	}
	time.Sleep(c.members[0].Quarantined())
	return c
}

// start starts a member, as a new process does.
func (c *cluster) start(i int) *paxoskv.Store {
	c.Helper()
	opts := c.opts
	opts.ID, opts.Peers, opts.Cluster = c.ids[i], c.ids, "test"
	if c.dirs != nil {
		opts.Dir = c.dirs[i]
	}
	began := time.Now()
	opts.Clock = func() (mono, boot time.Duration) {
		return time.Since(began), time.Since(began) + time.Duration(c.slept.Load())
	}
	if testing.Verbose() {
		opts.Logger = slog.New(slog.NewTextHandler(c.Output(), nil))
	}
	c.starts++
	s, err := paxoskv.NewOn(opts, c.starts, c.net.port(lease.MemberID(c.ids[i])))
	require.NoError(c, err)
	c.Cleanup(func() { _ = s.Close() })
	c.members[i] = s
	return s
}
