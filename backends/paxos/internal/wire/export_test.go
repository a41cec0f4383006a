package wire

import (
	"crypto/tls"
	"encoding/binary"
	"io"
	"log/slog"
	"time"

	"github.com/electkv/election/backends/paxos/internal/lease"
)

// What tests say and hear as a visitor would.
const (
	KindHello   = kindHello
	KindRefusal = kindRefusal
	KindAlive   = kindAlive
	KindMessage = kindMessage
	MaxHello    = maxHello
	MaxWaiting  = maxWaiting
	MaxClients  = maxClients
)

// Hello encodes a hello, of any version.
func Hello(version uint16, member lease.MemberID, incarnation uint64, terms lease.Terms) []byte {
	b := hello{member: member, incarnation: incarnation, terms: terms}.encode()
	binary.BigEndian.PutUint16(b[len(magic):], version)
	return b
}

// HelloAgain encodes what a hello was decoded to.
func HelloAgain(b []byte) ([]byte, error) {
	h, err := decodeHello(b)
	return h.encode(), err
}

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

// Complaints returns a function that complains.
func Complaints(log *slog.Logger) func(peer lease.MemberID, what string, err error) {
	return newComplaints(log).complain
}

// Secured returns the settings that both sides of a connection have.
func Secured(c Config) (*tls.Config, error) {
	s, err := secure(c.TLS, c.Self)
	if err != nil {
		return nil, err
	}
	return s.base, nil
}
