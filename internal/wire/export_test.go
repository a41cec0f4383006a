package wire

import (
	"crypto/tls"
	"io"
	"log/slog"
	"time"
)

// What tests say and hear as a visitor would.
const (
	KindHello   = kindHello
	KindRefusal = kindRefusal
	KindAlive   = kindAlive
	KindMessage = kindMessage
	MaxHello    = maxHello
	MaxWaiting  = maxWaiting
)

// Hello encodes a hello.
func (p Protocol) Hello(member string, incarnation uint64) []byte {
	return p.encode(hello{member: member, incarnation: incarnation})
}

// HelloAgain encodes what a hello was decoded to.
func (p Protocol) HelloAgain(b []byte) ([]byte, error) {
	h, err := p.decode(b)
	return p.encode(h), err
}

// ClientID is how members know a client.
func ClientID(incarnation uint64) string { return clientID(incarnation) }

// Frame returns a frame.
func Frame(k kind, body []byte) []byte { return appendFrame(nil, k, body) }

// ReadFrame reads one.
func ReadFrame(r io.Reader, limit int) (kind, []byte, error) { return readFrame(r, limit) }

// A Queue is what waits for a peer.
type Queue = queue

// NewQueue makes one.
func NewQueue(age time.Duration) *Queue { return newQueue(age) }

// Put and Take are the queue's.
func (q *queue) Put(m []byte) int { return q.put(m) }

// Take returns what is to be sent next.
func (q *queue) Take() []byte { return q.take() }

// Complaints returns a function that complains that a peer is not connected.
func Complaints(log *slog.Logger) func(peer, what string, err error) {
	c := newComplaints(log)
	return func(peer, what string, err error) { c.complain(peer, "peer_not_connected", what, err) }
}

// Secured returns the settings that both sides of a connection have.
func Secured(c Config) (*tls.Config, error) {
	s, err := secure(c.TLS, c.Self)
	if err != nil {
		return nil, err
	}
	return s.base, nil
}
