package group

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/electkv/election/internal/invitation"
	"github.com/electkv/election/internal/wire"
)

// Options name the processes that may be in a group. All of them must agree on Cluster, Interval
// and Drain: a process with other values is refused.
type Options struct {
	// ID is this process's address, host:port, as the others have it. Required.
	ID string

	// Peers are the addresses of all processes that may be in a group, this one's too: at most
	// 64. [Member.SetPeers] and [Member.SetRoster] change them. Two processes that have each other in their lists
	// may be in one group; otherwise lists may differ. Required.
	Peers []string

	// Cluster is a name that nobody else in the same network has. Required.
	Cluster string

	// TLS has the certificate of this process, its key, and in RootCAs the authority that signed
	// those of all of them. The certificate is for the host in the ID, for clients and servers.
	// Required, or GetTLS: there is no connection without TLS. paxoskv.Options.TLS describes the
	// other settings; New refuses settings with which one side would not be verified.
	TLS *tls.Config

	// GetTLS, in place of TLS, returns the settings for the next connection, so that certificate
	// and authority can change while the process runs: see [Files]. It is called before each
	// connection, one call after the other, and must return soon. It returns the same
	// pointer for as long as nothing has changed, and does not change what it has returned.
	//
	// New returns its error. Later, an error, or settings that New would refuse, are logged
	// once, and the settings before them stay in use.
	GetTLS func() (*tls.Config, error)

	// Listen is the address to listen at, if it is not the ID.
	Listen string

	// Dial connects to the address of a process, this one's too. Set it where that takes more than
	// a plain connection: a proxy, say. Default: a [net.Dialer]'s.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)

	// Interval is how often a leader sends its members a heartbeat. After three that were missed, a
	// process is taken for lost. Leaders look for other groups each five to seven and a half
	// intervals. From 10 ms to 1 minute. Default: 1 s.
	Interval time.Duration

	// Drain is how long a merge waits for the work of leaders to return. A process whose work takes
	// longer is left out, until it has returned. At most 24 h. Default: 10 intervals.
	Drain time.Duration

	// Logger gets what is wrong between the processes, and each group that is entered or
	// left. Each record has an attribute "event", which stays the same: docs/observability.md lists
	// them. Default: nothing is logged.
	Logger *slog.Logger
}

const (
	defaultInterval = time.Second
	minInterval     = 10 * time.Millisecond
	maxInterval     = time.Minute
	maxCluster      = 255 // bytes in the name of a cluster
)

// defaults returns the options with what was left out.
func (o Options) defaults() Options {
	if o.Interval == 0 {
		o.Interval = defaultInterval
	}
	if o.Drain == 0 {
		o.Drain = 10 * o.Interval
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// check says what is wrong with the options, apart from TLS.
func (o Options) check() error {
	switch {
	case o.ID == "":
		return errors.New("no ID: give this process's own address, host:port, as Peers has it")
	case o.Cluster == "":
		return errors.New("no Cluster: give all processes one name, which nobody else in the network has")
	case len(o.Cluster) > maxCluster:
		return fmt.Errorf("the cluster's name has %d bytes, where %d are the most", len(o.Cluster), maxCluster)
	case o.Interval < minInterval || o.Interval > maxInterval:
		return fmt.Errorf("interval %v: want %v to %v", o.Interval, minInterval, maxInterval)
	}
	return o.timing().Check()
}

// timing returns the durations of the core.
func (o Options) timing() invitation.Timing { return invitation.TimingOf(o.Interval, o.Drain) }

// addresses returns the ID and the peers in the one form that all processes use. The ID
// must be among the peers: one that is misspelt would make a group of its own.
func (o Options) addresses() (self string, peers []string, err error) {
	if self, err = wire.Member(o.ID); err != nil {
		return "", nil, fmt.Errorf("ID: %w", err)
	}
	if peers, err = list(self, o.Peers); err != nil {
		return "", nil, err
	}
	if !slices.Contains(peers, self) {
		return "", nil, fmt.Errorf("the ID %q is not among the peers %q: name the address of each process, this one's too", self, strings.Join(o.Peers, ","))
	}
	return self, peers, nil
}

// list returns addresses in the one form that all processes use. Self may be among them.
func list(self string, addrs []string) ([]string, error) {
	peers, err := wire.Members(addrs)
	if err == nil {
		err = invitation.Config{Self: invitation.ID(self)}.CheckPeers(ids(peers))
	}
	if err != nil {
		return nil, fmt.Errorf("peers: %w", err)
	}
	return peers, nil
}

// ids returns addresses as the core has them.
func ids(addrs []string) []invitation.ID {
	all := []invitation.ID{}
	for _, a := range addrs {
		all = append(all, invitation.ID(a))
	}
	return all
}
