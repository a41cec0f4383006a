package paxoskv

import (
	"fmt"

	"github.com/electkv/election/backends/paxos/internal/codec"
	"github.com/electkv/election/backends/paxos/internal/lease"
	"github.com/electkv/election/internal/wire"
)

// A transport carries the messages of package lease between members, over TCP.
type transport struct{ *wire.Node }

// version is that of the hello, and of all messages after it.
const version = 1

// maxClients is how many clients a member has at the same time.
const maxClients = 64

// protocol is what members with these terms speak.
func protocol(t lease.Terms) wire.Protocol {
	return wire.Protocol{Name: "paxos", Version: version, Terms: []wire.Term{
		wire.Text("cluster", t.Cluster),
		wire.List("members", addresses(t)),
		wire.Span("longest TTL", t.MaxTTL),
		wire.Span("round limit", t.Round),
		wire.Number("drift", t.Drift, "‰"),
	}}
}

// newTransport returns that of a member, or of a client, which has no ID.
func newTransport(opts Options, terms lease.Terms, incarnation uint64) (transport, error) {
	node, err := wire.New(wire.Config{
		Protocol: protocol(terms), Members: addresses(terms), Self: opts.ID, Clients: maxClients, MaxWait: terms.Round,
		Listen: opts.Listen, Incarnation: incarnation, TLS: opts.TLS, GetTLS: opts.GetTLS, Dial: opts.Dial, Logger: opts.Logger,
	})
	if err != nil {
		return transport{}, fmt.Errorf("paxoskv: %w", err)
	}
	return transport{node}, nil
}

// Listen implements [lease.Transport].
func (t transport) Listen(deliver func(from lease.MemberID, m lease.Message)) error {
	err := t.Node.Listen(func(from string, body []byte) error {
		m, err := codec.Decode(body)
		if err == nil {
			deliver(lease.MemberID(from), m)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("paxoskv: %w", err)
	}
	return nil
}

// Send implements [lease.Transport].
func (t transport) Send(to lease.MemberID, m lease.Message) {
	t.Node.Send(string(to), codec.Encode(m))
}

// addresses are those of the members.
func addresses(t lease.Terms) []string {
	all := []string{}
	for _, m := range t.Members {
		all = append(all, string(m))
	}
	return all
}
