package storeurl

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"

	paxoskv "github.com/electkv/election/backends/paxos"
)

// paxosParams are the URL parameters of a cluster of candidates.
func paxosParams() []string {
	return []string{"peers", "cluster", "cacert", "cert", "key", "dir", "founding", "listen", "max-ttl", "round", "drift"}
}

// noCertificate says what to do about it.
const noCertificate = "members prove to each other who they are: name cert, key and cacert, " +
	"or set ELECT_CERT, ELECT_KEY and ELECT_CACERT; docs/peers.md has the openssl commands that make them"

func parsePaxos(l *location) (opener, error) {
	switch {
	case len(l.hosts) > 1:
		return nil, errors.New("several hosts; the host is this member's own address, and all members are in peers=host:port,host:port")
	case l.user != "" || l.password != "":
		return nil, errors.New("a user; members have certificates")
	case l.prefix() != "":
		return nil, errors.New("a path; another cluster has another name, cluster=NAME")
	case l.query.Get("peers") == "":
		return nil, errors.New("no peers: name the members' addresses, peers=host:port,host:port")
	case l.query.Get("cluster") == "":
		return nil, errors.New("no cluster: give it a name that all members use, cluster=NAME")
	}
	options, err := l.paxosOptions()
	if err != nil {
		return nil, err
	}
	return func(_ context.Context, how purpose) (*Store, error) { return openPaxos(options, how.log) }, nil
}

func (l *location) paxosOptions() (paxoskv.Options, error) {
	options := paxoskv.Options{
		Peers:   strings.Split(l.query.Get("peers"), ","),
		Cluster: l.query.Get("cluster"),
		Dir:     l.query.Get("dir"),
		Listen:  l.query.Get("listen"),
	}
	if len(l.hosts) > 0 {
		options.ID = l.hosts[0]
		switch {
		case slices.ContainsFunc(options.Peers, func(p string) bool { return strings.EqualFold(p, options.ID) }):
		case len(options.Peers)%2 == 0: // the others
			options.Peers = append(options.Peers, options.ID)
		default:
			return options, fmt.Errorf("the own address, %s, is not among the %d peers: write all members there, this one as it is before the question mark", options.ID, len(options.Peers))
		}
	}
	var err error
	if options.Founding, err = l.flag("founding"); err != nil {
		return options, err
	}
	if options.Founding && options.Dir == "" && len(l.hosts) > 0 {
		return options, errors.New("founding=true without dir=DIRECTORY, which tells the next start that this one was")
	}
	if options.MaxTTL, err = l.duration("max-ttl"); err != nil {
		return options, err
	}
	if options.Round, err = l.duration("round"); err != nil {
		return options, err
	}
	if drift := l.query.Get("drift"); drift != "" {
		if options.Drift, err = strconv.Atoi(drift); err != nil || options.Drift < 1 {
			return options, errors.New(`parameter "drift" is not a number of thousandths from 1 on`)
		}
	}
	options.TLS, err = l.tlsConfig(tlsSource{caCert: "ELECT_CACERT", cert: "ELECT_CERT", key: "ELECT_KEY"})
	switch {
	case err != nil:
		return options, err
	case options.TLS == nil || len(options.TLS.Certificates) == 0 || options.TLS.RootCAs == nil:
		return options, errors.New(noCertificate)
	}
	return options, nil
}

// openPaxos starts a member, if it is to take part and the URL says as whom, or else a
// client.
func openPaxos(options paxoskv.Options, log *slog.Logger) (*Store, error) {
	if log == nil {
		options.ID, options.Dir, options.Listen, options.Founding = "", "", "", false
	}
	options.Logger = log
	store, err := paxoskv.New(&options)
	if err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}
	return &Store{KV: store, Paxos: store, closer: store}, nil
}
