package wire

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/electkv/election/backends/paxos/internal/lease"
)

// A Config says who takes part, and how.
type Config struct {
	// Terms are what all agree upon. The members are in the form of Members.
	Terms lease.Terms
	// Self is this member. Empty makes a client.
	Self lease.MemberID
	// Listen is the address to listen at, Self if empty. It differs where a
	// member's address is not that of an interface, as behind a translation.
	Listen string
	// Incarnation is another one for each start of a process.
	Incarnation uint64
	// TLS has the certificate, its key, and in RootCAs the authority that signed
	// those of all members.
	TLS *tls.Config
	// GetTLS, in place of TLS, is asked for it before each connection.
	GetTLS func() (*tls.Config, error)
	// Dial connects with a member's address, this one's too. Nil asks the network.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Logger gets what is wrong. Nil is silent.
	Logger *slog.Logger
}

// A Node is one end of all connections of a member or client: a [lease.Transport].
type Node struct {
	config      Config
	ours        hello
	credentials *credentials
	deliver     func(from lease.MemberID, m lease.Message)
	listener    net.Listener // nil of a client
	log         *complaints

	ctx  context.Context // it ends the node
	end  context.CancelFunc
	all  sync.WaitGroup
	met  chan struct{} // closed once the node has met itself, by once
	once sync.Once
	door *door

	knocks map[lease.MemberID]chan struct{} // of members that ask to be called

	mu     sync.Mutex
	closed bool
	open   map[net.Conn]bool
	peers  map[lease.MemberID]*peer // of this side too
}

// A peer is a member, or a client.
type peer struct {
	id    lease.MemberID
	queue *queue

	// Guarded by the node's mu.
	link    *link // nil while it is not connected
	trouble error // why it is not
}

// A Peer is what is known of a member.
type Peer struct {
	Member      lease.MemberID
	Connected   bool
	Trouble     error             // why it is not connected, as far as is known
	Certificate *x509.Certificate // that it showed for this connection
}

// New checks the config. It starts nothing.
func New(config Config) (*Node, error) {
	if config.Dial == nil {
		config.Dial = new(net.Dialer).DialContext
	}
	n := &Node{
		config: config,
		ours:   hello{member: config.Self, incarnation: config.Incarnation, terms: config.Terms},
		met:    make(chan struct{}),
		door:   newDoor(config.Terms.Members),
		open:   map[net.Conn]bool{},
		peers:  map[lease.MemberID]*peer{},
		log:    newComplaints(config.Logger),
		knocks: map[lease.MemberID]chan struct{}{},
	}
	if err := n.check(); err != nil {
		return nil, fmt.Errorf("paxoskv: %w", err)
	}
	n.ctx, n.end = context.WithCancel(context.Background())
	for _, member := range config.Terms.Members {
		n.peers[member] = n.newPeer(member)
		n.knocks[member] = make(chan struct{}, 1)
	}
	return n, nil
}

// newPeer returns one that is not connected.
func (n *Node) newPeer(id lease.MemberID) *peer {
	return &peer{id: id, queue: newQueue(n.ours.terms.Round), trouble: errors.New("it has not called yet: does it run, with this member in its list?")}
}

func (n *Node) check() error {
	members := []string{}
	for _, m := range n.config.Terms.Members {
		members = append(members, string(m))
	}
	normal, err := Members(members)
	switch {
	case err != nil:
		return err
	case !slices.Equal(normal, n.config.Terms.Members):
		return fmt.Errorf("the members %q are not in their order and form, %q", members, list(normal))
	case len(n.config.Terms.Cluster) > maxName:
		return fmt.Errorf("the cluster's name has %d bytes, where %d are the most", len(n.config.Terms.Cluster), maxName)
	case n.config.Self != "" && !slices.Contains(normal, n.config.Self):
		return fmt.Errorf("%q is not among the members %q: write its address as the list has it", n.config.Self, list(normal))
	}
	if err := n.config.Terms.Check(); err != nil {
		return err
	}
	n.credentials, err = newCredentials(n.config)
	return err
}

// Listen listens, and connects with the others, now and whenever a connection is lost,
// until Close. Each peer's messages are delivered one after the other.
func (n *Node) Listen(deliver func(from lease.MemberID, m lease.Message)) error {
	n.deliver = deliver
	if n.ours.member == "" {
		close(n.met)
	} else if err := n.listen(); err != nil {
		return fmt.Errorf("paxoskv: %w", err)
	}
	for _, member := range n.ours.terms.Members {
		if n.ours.member <= member { // so does a client
			n.all.Go(func() { n.reach(member) })
		} else {
			n.all.Go(func() { n.knock(member) })
		}
	}
	if n.listener != nil {
		n.all.Go(n.accept)
	}
	return nil
}

func (n *Node) listen() error {
	addr := n.config.Listen
	if addr == "" {
		addr = string(n.ours.member)
	}
	var err error
	n.listener, err = new(net.ListenConfig).Listen(n.ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("%w; is the member started twice, or is its address not this host's? then say where to listen", err)
	}
	return nil
}

// Send sends a message to a member, or to a client that a message came from. It does
// not wait. The message does, for a round at most, for the connection and for those
// before it.
func (n *Node) Send(to lease.MemberID, m lease.Message) {
	n.mu.Lock()
	p := n.peers[to]
	n.mu.Unlock()
	if p == nil { // a client that has gone
		return
	}
	body := Encode(m)
	if len(body) > MaxMessage {
		n.log.complain(to, "message not sent", fmt.Errorf("it has %d bytes, where %d are the most", len(body), MaxMessage))
		return
	}
	if dropped := p.queue.put(body); dropped > 0 {
		n.log.complain(to, "messages dropped", errors.New("the peer does not take them fast enough"))
	}
}

// Peers says which of the members are connected, this one included.
func (n *Node) Peers() []Peer {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := []Peer{}
	for _, member := range n.ours.terms.Members {
		p := n.peers[member]
		known := Peer{Member: member, Connected: p.link != nil, Trouble: p.trouble}
		if p.link != nil {
			known.Certificate = p.link.conn.ConnectionState().PeerCertificates[0]
		}
		all = append(all, known)
	}
	return all
}

// Close ends all connections. When it has returned, nothing is received any more. It
// must not be called by what messages are delivered to.
func (n *Node) Close() error {
	n.end()
	n.mu.Lock()
	n.closed = true
	for conn := range n.open {
		conn.Close()
	}
	n.mu.Unlock()
	if n.listener != nil {
		_ = n.listener.Close() // however it went, it is closed
	}
	n.all.Wait()
	return nil
}

// track makes Close end a connection. The returned function closes it.
func (n *Node) track(conn net.Conn) (release func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		conn.Close()
	}
	n.open[conn] = true
	return func() {
		conn.Close()
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.open, conn)
	}
}

// wait waits, unless the node is closed meanwhile.
func (n *Node) wait(d time.Duration) { n.waitFor(nil, d) }

// waitFor waits for something, but not for longer than that. It reports whether it came.
func (n *Node) waitFor(what <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-what:
		return true
	case <-timer.C:
	case <-n.ctx.Done():
	}
	return false
}
