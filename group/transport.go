package group

import (
	"time"

	"github.com/electkv/election/internal/invitation"
	"github.com/electkv/election/internal/invitation/codec"
	"github.com/electkv/election/internal/wire"
)

// A transport carries messages to other processes. It may lose, delay, double and reorder them.
type transport interface {
	// Listen delivers what arrives, from several goroutines. An error of deliver says that
	// the message is none that its sender may send.
	Listen(deliver func(from invitation.ID, m invitation.Message) error) error
	// Send sends a message, or loses it. It does not wait.
	Send(to invitation.ID, m invitation.Message)
	// SetMembers has it know these processes, and no others any more.
	SetMembers(addrs []string) error
	// Flush waits a moment at most for what was sent to have left.
	Flush()
	// Close ends it. When it has returned, nothing is delivered any more.
	Close() error
}

// version is that of the hello, and of all messages after it.
const version = 1

// network is the transport over TCP, with mutual TLS.
type network struct {
	*wire.Node
	patience time.Duration // of Flush
}

func newNetwork(opts Options, self string, peers []string, incarnation uint64) (network, error) {
	node, err := wire.New(wire.Config{
		Protocol: wire.Protocol{Name: "groups", Version: version, Terms: []wire.Term{
			wire.Text("cluster", opts.Cluster),
			wire.Span("interval", opts.Interval),
			wire.Span("drain", opts.Drain),
		}},
		Members: peers, Self: self, MaxWait: opts.Interval, Incarnation: incarnation,
		Listen: opts.Listen, TLS: opts.TLS, GetTLS: opts.GetTLS, Dial: opts.Dial, Logger: opts.Logger,
	})
	return network{node, opts.Interval / 2}, err
}

// Listen implements transport.
func (n network) Listen(deliver func(from invitation.ID, m invitation.Message) error) error {
	return n.Node.Listen(func(from string, body []byte) error {
		m, err := codec.Decode(body)
		if err != nil {
			return err
		}
		return deliver(invitation.ID(from), m)
	})
}

// Send implements transport.
func (n network) Send(to invitation.ID, m invitation.Message) {
	n.Node.Send(string(to), codec.Encode(m))
}

// Flush implements transport.
func (n network) Flush() { n.Node.Flush(n.patience) }
