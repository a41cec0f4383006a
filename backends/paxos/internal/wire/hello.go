package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/electkv/election/backends/paxos/internal/lease"
)

// Version is that of the protocol: of the hello, and of all messages after it.
const Version = 1

// magic begins a hello, so that a stranger is told from another version.
const magic = "election/paxos"

// maxName bounds the name of a cluster.
const maxName = 255

// maxRefusal bounds the text of a refusal.
const maxRefusal = 2 << 10

// A hello says who is there, and what it holds to be agreed upon.
type hello struct {
	member      lease.MemberID // empty: a client
	incarnation uint64
	terms       lease.Terms
}

func (h hello) encode() []byte {
	w := writer{binary.BigEndian.AppendUint16([]byte(magic), Version)}
	w.text(string(h.member))
	w.number(h.incarnation)
	w.text(h.terms.Cluster)
	w.number(uint64(len(h.terms.Members)))
	for _, m := range h.terms.Members {
		w.text(string(m))
	}
	w.span(h.terms.MaxTTL)
	w.span(h.terms.Round)
	w.number(uint64(h.terms.Drift))
	return w.bytes
}

func decodeHello(b []byte) (hello, error) {
	rest, ok := bytes.CutPrefix(b, []byte(magic))
	if !ok || len(rest) < 2 {
		return hello{}, errors.New("it does not speak this protocol")
	}
	if v := binary.BigEndian.Uint16(rest); v != Version {
		return hello{}, fmt.Errorf("it speaks version %d of the protocol, and this one version %d", v, Version)
	}
	r := reader{bytes: rest[2:]}
	h := hello{member: r.member(), incarnation: r.number()}
	h.terms.Cluster = r.text()
	for range r.count(lease.MaxMembers) {
		h.terms.Members = append(h.terms.Members, r.member())
	}
	h.terms.MaxTTL, h.terms.Round, h.terms.Drift = r.span(), r.span(), r.count(math.MaxInt32)
	if r.end() != nil {
		return hello{}, errors.New("its hello is malformed")
	}
	return h, nil
}

// differs returns an error that says what of it is not as in ours.
func (h hello) differs(ours hello) error {
	a, b := h.terms, ours.terms
	switch {
	case a.Cluster != b.Cluster:
		return fmt.Errorf("its cluster is %q, and the other's %q", a.Cluster, b.Cluster)
	case !slices.Equal(a.Members, b.Members):
		return fmt.Errorf("its members are %q, and the other's %q: they must be the same, in any order", list(a.Members), list(b.Members))
	case a.MaxTTL != b.MaxTTL:
		return fmt.Errorf("its longest TTL is %v, and the other's %v: they must be the same", a.MaxTTL, b.MaxTTL)
	case a.Round != b.Round:
		return fmt.Errorf("its round limit is %v, and the other's %v: they must be the same", a.Round, b.Round)
	case a.Drift != b.Drift:
		return fmt.Errorf("its drift is %d‰, and the other's %d‰: they must be the same", a.Drift, b.Drift)
	case h.member != "" && !slices.Contains(b.Members, h.member):
		return fmt.Errorf("it says that it is %q, which is no member", h.member)
	}
	return nil
}
