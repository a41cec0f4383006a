package wire_test

import (
	"bytes"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/backends/paxos/internal/lease"
	"github.com/electkv/election/backends/paxos/internal/wire"
	"github.com/electkv/election/internal/testenv"
)

// patience is what a busy machine may add to anything that is owed.
const patience = 20 * time.Second

// A cluster is what its members agree upon.
type cluster struct {
	*testing.T
	authority *testenv.Authority
	members   []lease.MemberID // in the order of the alphabet: the first one calls all others
}

func newCluster(t *testing.T, members int) cluster {
	addrs := []string{}
	for range members {
		addrs = append(addrs, testenv.FreeAddr(t))
	}
	return clusterAt(t, addrs...)
}

func clusterAt(t *testing.T, addrs ...string) cluster {
	t.Helper()
	members, err := wire.Members(addrs)
	require.NoError(t, err)
	return cluster{T: t, authority: testenv.NewAuthority(t), members: members}
}

// config is that of a member, or, if self is empty, of a client.
func (c cluster) config(self lease.MemberID) wire.Config {
	return wire.Config{
		Terms:       lease.Terms{Cluster: "test", Members: c.members, MaxTTL: time.Minute, Round: time.Second, Drift: 2},
		Self:        self,
		Incarnation: rand.Uint64(),
		TLS:         c.authority.Config("127.0.0.1"),
	}
}

// A node is a running one, with what it received and what it complained of.
type node struct {
	*wire.Node
	cluster
	id lease.MemberID

	mu       sync.Mutex
	received []string
	log      bytes.Buffer
}

// start starts a node that ends with the test.
func (c cluster) start(config wire.Config) *node {
	c.Helper()
	n := &node{cluster: c, id: config.Self}
	if n.id == "" {
		n.id = wire.ClientID(config.Incarnation)
	}
	config.Logger = slog.New(slog.NewTextHandler(n, nil))
	var err error
	n.Node, err = wire.New(config)
	require.NoError(c, err)
	c.Cleanup(func() { require.NoError(c, n.Close()) })
	require.NoError(c, n.Listen(n.take))
	return n
}

// take takes a query, and answers it with an accept.
func (n *node) take(from lease.MemberID, m lease.Message) {
	n.mu.Lock()
	n.received = append(n.received, string(from)+": "+m.Name())
	n.mu.Unlock()
	if _, ok := m.(lease.Query); ok {
		n.Send(from, lease.Accept{Safe: "got " + m.Name()})
	}
}

func (c cluster) startAll() []*node {
	c.Helper()
	all := []*node{}
	for _, m := range c.members {
		all = append(all, c.start(c.config(m)))
	}
	return all
}

// Write takes what the node logs.
func (n *node) Write(line []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.log.Write(line)
}

func (n *node) logged() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.log.String()
}

func (n *node) has(message string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Contains(n.received, message)
}

// connected reports whether a member is connected, and why not.
func (n *node) connected(to lease.MemberID) (bool, error) {
	for _, p := range n.Peers() {
		if p.Member == to {
			return p.Connected, p.Trouble
		}
	}
	return false, nil
}

// delivers sends a query until it is answered, as the protocol above would.
func (n *node) delivers(to *node, message string) {
	n.Helper()
	require.Eventually(n, func() bool {
		n.Send(to.id, lease.Query{Safe: message})
		return to.has(string(n.id)+": "+message) && n.has(string(to.id)+": got "+message)
	}, patience, 10*time.Millisecond, "from %s to %s\n%s\n%s", n.id, to.id, n.logged(), to.logged())
}

// complains waits until the node has logged a text.
func (n *node) complains(text string) {
	n.Helper()
	require.Eventually(n, func() bool { return bytes.Contains([]byte(n.logged()), []byte(text)) }, patience, 10*time.Millisecond, "want %s", text)
}

// loses waits until a member is not connected.
func (n *node) loses(to lease.MemberID) {
	n.Helper()
	require.Eventually(n, func() bool { ok, _ := n.connected(to); return !ok }, patience, 10*time.Millisecond)
}
