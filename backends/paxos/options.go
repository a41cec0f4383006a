package paxoskv

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/electkv/election/backends/paxos/internal/lease"
	"github.com/electkv/election/internal/wire"
)

// Options name the members. All of them must agree on Peers, Cluster, MaxTTL, Round and
// Drift: a member with other values is refused.
type Options struct {
	// ID is this member's address, host:port, as Peers or the other members have
	// it. If it is empty, the store is a client: it can do all that a member can, but
	// it has no vote.
	ID string

	// Peers are the addresses of all members; a member may leave out its own. Three
	// members go on when one is gone, five when two are. Required.
	Peers []string

	// Cluster is a name that no other cluster of the same network has. Required.
	Cluster string

	// TLS has the certificate of this member, its key, and in RootCAs the authority
	// that signed those of all members. A member's certificate is for the host in
	// its ID, for clients and servers. Required, or GetTLS: there is no connection
	// without TLS.
	//
	// A connection ends when the certificate of either side expires. GetCertificate
	// and GetClientCertificate, which go together, are called for each new
	// connection. VerifyPeerCertificate and VerifyConnection are called on both
	// sides, after the other side was verified. All other settings apply too, except
	// that New refuses settings with which one side would not be verified, and that
	// session tickets are off.
	TLS *tls.Config

	// GetTLS, in place of TLS, returns the settings for the next connection, so that
	// certificate and authority can change while the member runs: see [Files]. It is
	// called before each connection, one call after the other, and must return soon. It
	// returns the same pointer for as long as nothing has changed, and does not change
	// what it has returned.
	//
	// New returns its error. Later, an error, or settings that New would refuse, are
	// logged once, and the settings before them stay in use. Connections go on with the
	// certificates that they began with, until the first of those expires.
	GetTLS func() (*tls.Config, error)

	// Listen is the address to listen at, if it is not the ID.
	Listen string

	// Dial connects to the address of a member, this one's too. Set it where that takes
	// more than a plain connection: a proxy, say. The program that answers there needs
	// the member's certificate all the same. Default: a [net.Dialer]'s.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)

	// Dir is a folder of this member's own, on a disk. It keeps which tokens were
	// given out, so that they grow even if all members are restarted at once with
	// wrong clocks. Without a Dir they are seeded with the wall clock. That there is
	// at most one leader depends on neither.
	Dir string

	// Founding says that this member has never run before, so that it need not wait
	// in quarantine when it starts. It needs a Dir, which must not exist or be empty;
	// with a Dir that has been used it means nothing. It must not be set for a
	// member whose Dir was lost.
	Founding bool

	// MaxTTL is the longest TTL that a record may have. A member that has just started
	// takes no part for a little longer than that. Default: 1 minute.
	MaxTTL time.Duration

	// Round is how long one attempt may take: a message and its answer, twice.
	// Default: 1 s.
	Round time.Duration

	// Drift is by how much a member's clock may run fast or slow, in thousandths.
	// Default: 5. At most 100.
	Drift int

	// Backstop is the longest time between two reads, by a watch, of a safe that does
	// not seem to change. It bounds how late a watch sees what it was told while it
	// was cut off. Default: 5 s; 1 s for clients, since no member tells them.
	Backstop time.Duration

	// Logger gets what is wrong between the members. Default: nothing is logged.
	Logger *slog.Logger

	// Clock reads two clocks of this host: one that nobody can set, and one that also
	// goes on while the host sleeps. Default: the host's clocks.
	Clock func() (mono, boot time.Duration)
}

const (
	defaultMaxTTL = time.Minute
	defaultRound  = time.Second
	defaultDrift  = 5
	maxCluster    = 255 // bytes in the name of a cluster
)

// defaults returns the options with what was left out.
func (o Options) defaults() Options {
	if o.MaxTTL == 0 {
		o.MaxTTL = defaultMaxTTL
	}
	if o.Round == 0 {
		o.Round = min(defaultRound, o.MaxTTL)
	}
	if o.Drift == 0 {
		o.Drift = defaultDrift
	}
	if o.Backstop == 0 {
		o.Backstop = 5 * time.Second
		if o.ID == "" {
			o.Backstop = time.Second
		}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// terms returns what all members must agree on.
func (o Options) terms() (lease.Terms, error) {
	all := append([]string{}, o.Peers...)
	if o.ID != "" && !wire.Listed(o.Peers, o.ID) {
		all = append(all, o.ID)
	}
	members, err := wire.Members(all)
	if err != nil {
		return lease.Terms{}, fmt.Errorf("paxoskv: %w", err)
	}
	t := lease.Terms{Cluster: o.Cluster, MaxTTL: o.MaxTTL, Round: o.Round, Drift: o.Drift}
	for _, m := range members {
		t.Members = append(t.Members, lease.MemberID(m))
	}
	if err := t.Check(); err != nil {
		return lease.Terms{}, fmt.Errorf("paxoskv: %w", err)
	}
	switch {
	case len(o.Cluster) > maxCluster:
		return lease.Terms{}, fmt.Errorf("paxoskv: the cluster's name has %d bytes, where %d are the most", len(o.Cluster), maxCluster)
	case o.Backstop < 0:
		return lease.Terms{}, fmt.Errorf("paxoskv: backstop %v: want a positive duration", o.Backstop)
	case o.ID == "" && (o.Dir != "" || o.Listen != ""):
		return lease.Terms{}, errors.New("paxoskv: a client, without an ID, has neither a Dir nor an address to Listen at")
	case o.Founding && o.Dir == "":
		return lease.Terms{}, errors.New("paxoskv: Founding needs a Dir, which tells the next start that this one was")
	}
	return t, nil
}
