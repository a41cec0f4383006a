package wire_test

import (
	"bytes"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/internal/wire"
)

// maxClients is how many clients a member has in tests.
const maxClients = 64

// patience is what a busy machine may add to anything that is owed.
const patience = time.Minute

// A cluster is what its members agree upon.
type cluster struct {
	*testing.T
	authority *testenv.Authority
	members   []string // in the order of the alphabet: the first one calls all others
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

// protocol is what the members speak: see take.
func (c cluster) protocol() wire.Protocol {
	return wire.Protocol{Name: "echo", Version: 1, Terms: []wire.Term{
		wire.Text("cluster", "test"), wire.List("members", c.members), wire.Span("longest TTL", time.Minute), wire.Number("drift", 2, "‰"),
	}}
}

// config is that of a member, or, if self is empty, of a client.
func (c cluster) config(self string) wire.Config {
	return wire.Config{
		Protocol:    c.protocol(),
		Members:     c.members,
		Self:        self,
		Clients:     maxClients,
		MaxWait:     time.Second,
		Incarnation: rand.Uint64(),
		TLS:         c.authority.Config("127.0.0.1"),
	}
}

// A node is a running one, with what it received and what it complained of.
type node struct {
	*wire.Node
	cluster
	id string

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

// take takes a message, and answers it if it asks for that. One that shouts is none.
func (n *node) take(from string, body []byte) error {
	text := string(body)
	if text == "" || text[0] == '!' {
		return wire.ErrMalformed
	}
	n.mu.Lock()
	n.received = append(n.received, from+": "+text)
	n.mu.Unlock()
	if asked, ok := strings.CutSuffix(text, "?"); ok {
		n.Send(from, []byte("got "+asked))
	}
	return nil
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
func (n *node) connected(to string) (bool, error) {
	for _, p := range n.Peers() {
		if p.Member == to {
			return p.Connected, p.Trouble
		}
	}
	return false, nil
}

// delivers sends a question until it is answered, as the protocol above would.
func (n *node) delivers(to *node, message string) {
	n.Helper()
	require.Eventually(n, func() bool {
		n.Send(to.id, []byte(message+"?"))
		return to.has(n.id+": "+message+"?") && n.has(to.id+": got "+message)
	}, patience, 10*time.Millisecond, "from %s to %s\n%s\n%s", n.id, to.id, n.logged(), to.logged())
}

// complains waits until the node has logged a text.
func (n *node) complains(text string) {
	n.Helper()
	require.Eventually(n, func() bool { return bytes.Contains([]byte(n.logged()), []byte(text)) }, patience, 10*time.Millisecond, "want %s", text)
}

// loses waits until a member is not connected.
func (n *node) loses(to string) {
	n.Helper()
	require.Eventually(n, func() bool { ok, _ := n.connected(to); return !ok }, patience, 10*time.Millisecond)
}
