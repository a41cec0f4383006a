package wire

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"
)

// A Config says who takes part, and how.
type Config struct {
	// Protocol is what this side speaks.
	Protocol Protocol
	// Members are the addresses of all members, as far as this side knows. Self is one of
	// them, listed or not.
	Members []string
	// Self is the address of this member. Empty makes a client.
	Self string
	// Clients is how many clients this member has at the same time.
	Clients int
	// MaxWait is how long a message waits for its connection, and for those before it.
	// What is older is of no use to anybody.
	MaxWait time.Duration
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

// A Node is one end of all connections of a member or client.
type Node struct {
	config      Config
	ours        hello
	credentials *credentials
	deliver     func(from string, body []byte) error
	listener    net.Listener // nil of a client
	log         *complaints

	ctx  context.Context // it ends the node
	end  context.CancelFunc
	all  sync.WaitGroup
	met  chan struct{} // closed once the node has met itself, by once
	once sync.Once
	door *door

	mu        sync.Mutex
	listening bool
	members   []string         // in the form of Members
	peers     map[string]*peer // of this side too
}

// A peer is a member, or a client.
type peer struct {
	id    string
	queue *queue
	knock chan struct{}   // it asks to be called
	ctx   context.Context // of a member: it ends when it is none any more
	end   context.CancelFunc

	// Guarded by the node's mu.
	link    *link // nil while it is not connected
	trouble error // why it is not
}

// A Peer is what is known of a member.
type Peer struct {
	Member      string
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
		met:    make(chan struct{}),
		door:   newDoor(),
		peers:  map[string]*peer{},
		log:    newComplaints(config.Logger),
	}
	if err := n.check(); err != nil {
		return nil, err
	}
	n.ctx, n.end = context.WithCancel(context.Background())
	if err := n.SetMembers(config.Members); err != nil {
		n.end()
		return nil, err
	}
	return n, nil
}

// ID is under which name others know this side: its address, or, of a client, one of its own.
func (n *Node) ID() string {
	if n.config.Self == "" {
		return clientID(n.config.Incarnation)
	}
	return n.config.Self
}

// check says what is wrong with the config, apart from the members.
func (n *Node) check() (err error) {
	if n.config.Self != "" {
		if n.config.Self, err = Member(n.config.Self); err != nil {
			return err
		}
	}
	n.ours = hello{member: n.config.Self, incarnation: n.config.Incarnation}
	if err := n.config.Protocol.check(); err != nil {
		return err
	}
	if n.config.MaxWait <= 0 {
		return fmt.Errorf("messages that wait for %v: want more than 0", n.config.MaxWait)
	}
	n.credentials, err = newCredentials(n.config)
	return err
}

// Listen listens, and connects with the others, now and whenever a connection is lost,
// until Close. Each peer's messages are delivered one after the other; an error of deliver
// ends the peer's connection, and is logged.
func (n *Node) Listen(deliver func(from string, body []byte) error) error {
	n.deliver = deliver
	if n.ours.member == "" {
		close(n.met)
	} else if err := n.listen(); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.ctx.Err() != nil {
		return errors.New("the node is closed")
	}
	n.listening = true
	for _, member := range n.members {
		n.connect(n.peers[member])
	}
	if n.listener != nil {
		n.all.Go(n.accept)
	}
	return nil
}

func (n *Node) listen() error {
	addr := n.config.Listen
	if addr == "" {
		addr = n.ours.member
	}
	var err error
	n.listener, err = new(net.ListenConfig).Listen(n.ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("%w; is the member started twice, or is its address not this host's? then say where to listen", err)
	}
	return nil
}

// Send sends a message to a member, or to a client that a message came from. It does
// not wait. The message does, for the connection and for those before it. It must not be
// changed any more.
func (n *Node) Send(to string, body []byte) {
	n.mu.Lock()
	p := n.peers[to]
	n.mu.Unlock()
	if p == nil { // a client that has gone
		return
	}
	if len(body) > MaxMessage {
		n.log.complain(to, "message_not_sent", "message not sent", fmt.Errorf("it has %d bytes, where %d are the most", len(body), MaxMessage))
		return
	}
	if dropped := p.queue.put(body); dropped > 0 {
		n.log.complain(to, "messages_dropped", "messages dropped", errors.New("the peer does not take them fast enough"))
	}
}

// Flush waits until all that was sent to peers that are connected is on its way, but not for
// longer than that. It is for last words before Close, which loses what waits.
func (n *Node) Flush(d time.Duration) {
	for end := time.Now().Add(d); !n.flushed() && time.Now().Before(end); {
		n.wait(time.Millisecond)
	}
}

func (n *Node) flushed() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.peers {
		if p.link != nil && !p.queue.empty() {
			return false
		}
	}
	return true
}

// Close ends all connections. When it has returned, nothing is received any more. It
// must not be called by what messages are delivered to.
func (n *Node) Close() error {
	n.mu.Lock() // or Listen may start what Wait has not seen
	n.end()
	n.mu.Unlock()
	if n.listener != nil {
		_ = n.listener.Close() // however it went, it is closed
	}
	n.all.Wait()
	return nil
}

// track makes Close end a connection. The returned function closes it.
func (n *Node) track(conn net.Conn) (release func()) {
	stop := context.AfterFunc(n.ctx, func() { conn.Close() })
	return func() {
		stop()
		conn.Close()
	}
}

// wait waits, unless the node is closed meanwhile.
func (n *Node) wait(d time.Duration) { waitFor(n.ctx, nil, d) }

// waitFor waits for something, but not for longer than that. It reports whether it came.
func waitFor(ctx context.Context, what <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-what:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}
