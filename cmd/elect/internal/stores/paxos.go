package stores

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	paxoskv "github.com/electkv/election/backends/paxos"
	"github.com/electkv/election/cmd/elect/internal/peers"
)

// noCertificate says what to do about it.
const noCertificate = "members prove to each other who they are: name cert, key and cacert, " +
	"or set ELECT_CERT, ELECT_KEY and ELECT_CACERT; elect peers init makes them"

func paxosKind() kind {
	return kind{
		name: "paxos", form: "paxos://host:port?peers=host:port,host:port&cluster=name", parse: parsePaxos,
		params: []string{"peers", "cluster", "cacert", "cert", "key", "dir", "founding", "listen", "max-ttl", "round", "drift"},
		help:   [][2]string{{"paxos://own-host:port?peers=...&cluster=NAME", "the candidates themselves"}},
		besides: `With paxos the candidates are the store: each elect run is a member. The host in
its URL is the address at which the other members reach it.

  peers=host:port,host:port  all members: three, or five
  cluster=NAME               a name that they share
  cert, key, cacert          are always needed, here or in ELECT_CERT, ELECT_KEY and
                             ELECT_CACERT; elect peers init makes them. The key
                             may be in the file of cert. Members take new files
                             without a restart
  dir=DIRECTORY              keeps on disk which tokens were given out
  founding=true              leaves out the quarantine at the very first start;
                             it needs dir
  listen=host:port           where to listen, if not at the member's own address
  max-ttl, round, drift      must be the same at all members; the defaults are 1m,
                             1s and 5 (thousandths)

The other commands ask the members, from anywhere, and need no host in the URL.
Without a host in the URL, elect run is a candidate that has no vote.`,
		unshared: "has another URL for each member, and the demo takes one for its three; see elect help peers",
		examine:  examinePaxos,
	}
}

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
			return options, fmt.Errorf("this member's own address, %s, is not among the %d peers: list all members in peers=, this one exactly as it is before the question mark", options.ID, len(options.Peers))
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
	files, err := l.paxosFiles()
	if err != nil {
		return options, err
	}
	options.GetTLS = files.TLS // again for each connection, so that they can be renewed
	return options, nil
}

// paxosFiles returns where certificate, key and authority are.
func (l *location) paxosFiles() (*paxoskv.Files, error) {
	files := &paxoskv.Files{Cert: l.setting("cert", "ELECT_CERT"), Key: l.setting("key", "ELECT_KEY"), CA: l.setting("cacert", "ELECT_CACERT")}
	if files.Cert == "" || files.CA == "" {
		return nil, errors.New(noCertificate)
	}
	return files, nil
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
	return &Store{KV: store, Backend: &paxosStore{store: store}}, nil
}

// A paxosStore is a cluster of candidates, as one of its members or clients has it.
type paxosStore struct {
	base
	store *paxoskv.Store
}

// Close implements [Backend].
func (p *paxosStore) Close() error { return p.store.Close() }

// Member implements [Backend].
func (p *paxosStore) Member() bool { return !p.store.Status().Client }

// Hint implements [Backend].
func (p *paxosStore) Hint(_ context.Context, silent bool) string {
	st := p.store.Status()
	if inGroups(st) > 0 {
		return "or ask members of paxoskv: these form groups, which keep no elections"
	}
	if silent && st.Connected() >= st.Majority {
		return fmt.Sprintf("a member that has started grants nothing for %v: wait, if a majority has", st.QuarantineAfterStart.Round(100*time.Millisecond))
	}
	return ""
}

// inGroups returns how many members have said that they speak the protocol of package group.
func inGroups(st paxoskv.Status) (n int) {
	for _, m := range st.Members {
		if m.Trouble != nil && strings.Contains(m.Trouble.Error(), `the protocol "paxos", and the other "groups"`) {
			n++
		}
	}
	return n
}

// OtherTTLs implements [Backend].
func (p *paxosStore) OtherTTLs() string { return ", or another max-ttl in the URLs of all members" }

// Delay implements [Backend].
func (p *paxosStore) Delay() (why, advice string) {
	return "where a write reached a few members only, the others wait for some rounds",
		"reckon with the longer time, or give all members a shorter round, if their network allows it"
}

// Examine says how the cluster is, as the command that asks it sees it. That is a client:
// what a member keeps to itself is told by the URL, and by the member's own log.
func (p *paxosStore) Examine(ctx context.Context, _ time.Duration) []Finding {
	st := settled(ctx, p.store)
	return []Finding{
		quorum(st),
		reachable(st),
		certificates(st, time.Now()),
		{
			OK, "quarantine", fmt.Sprintf("a member that was restarted grants nothing for %v", st.QuarantineAfterStart.Round(time.Millisecond)),
			"it has forgotten what it granted; until then the others must be a majority without it",
			"restart members one after the other, and not faster than that",
		},
		{
			OK, "drift", fmt.Sprintf("clocks may run fast or slow by up to %d‰", st.Drift),
			"one that is further off could let a second leader be elected while the first still trusts its lease", "keep NTP or chrony running; nobody needs the right time",
		},
		{
			OK, "tokens", "grow as long as a majority runs on or keeps a dir; which members do is not seen from here",
			"if a majority is restarted at once without one, tokens go on from the wall clock", "see that each member's URL has a dir of its own, on a disk",
		},
	}
}

// ExamineFailed says the same: which members are away is why. Those that form groups keep no
// records, but whether they are reached can be told.
func (p *paxosStore) ExamineFailed(ctx context.Context) []Finding {
	st := settled(ctx, p.store)
	if n := inGroups(st); n > 0 {
		f := Finding{Level: OK, Subject: "groups", Found: fmt.Sprintf("%d of %d members are reached, and form groups (package group)", n, len(st.Members))}
		if n < len(st.Members) {
			f.Level, f.Why, f.Advice = Warn, "a group has only members that are reached", "start the others, or let this host reach them: the round trip says why they are not"
		}
		return []Finding{f}
	}
	return p.Examine(ctx, 0)
}

// examinePaxos says whether the certificate of this host is right, and for how long. A
// member with one that is not is not let in by the others.
func examinePaxos(l *location) []Finding {
	files, err := l.paxosFiles()
	if err != nil {
		return nil
	}
	id := ""
	if len(l.hosts) > 0 {
		id = l.hosts[0]
	}
	f := Finding{Level: OK, Subject: "certificate"}
	from, until, err := files.Validity(id)
	switch left := time.Until(until); {
	case err != nil:
		f.Level, f.Found = Fail, err.Error()
		f.Why, f.Advice = "the other members refuse a host without a valid certificate of their authority", "see that this host's clock is right; else renew the certificate with elect peers renew, and copy it here"
	case !time.Now().Before(peers.DueAt(from, until)):
		f.Level, f.Found = Warn, "it ends in "+rough(left)+", and two thirds of its life are over"
		f.Why, f.Advice = endsWhy, endsAdvice
	default:
		f.Found = "it is good for " + rough(left)
	}
	return []Finding{f}
}

const (
	endsWhy    = "a member whose certificate has ended is cut off from the others, as if its host were gone"
	endsAdvice = "run elect peers renew, and copy its new file to the host; the member takes it without a restart"
)

// certificates says how long those are good that the members have now: they show them as
// each connection begins.
func certificates(st paxoskv.Status, now time.Time) Finding {
	f := Finding{Level: OK, Subject: "certificates"}
	due := []string{}
	first := paxoskv.Member{}
	for _, m := range st.Members {
		if m.Certificate == nil {
			continue
		}
		if !now.Before(peers.DueAt(m.Certificate.NotBefore, m.Certificate.NotAfter)) {
			due = append(due, fmt.Sprintf("%s in %s", m.ID, rough(m.Certificate.NotAfter.Sub(now))))
		}
		if first.Certificate == nil || m.Certificate.NotAfter.Before(first.Certificate.NotAfter) {
			first = m
		}
	}
	switch {
	case first.Certificate == nil:
		f.Found = "no member is reached that could show one"
	case len(due) > 0:
		f.Level, f.Found = Warn, "of these, two thirds of the life are over: "+strings.Join(due, ", ")
		f.Why, f.Advice = endsWhy, endsAdvice
	default:
		f.Found = fmt.Sprintf("the first ends in %s: %s", rough(first.Certificate.NotAfter.Sub(now)), first.ID)
	}
	return f
}

// rough writes a time that is left in days, if it is many.
func rough(d time.Duration) string {
	if days := int(d.Hours() / 24); days > 2 {
		return fmt.Sprintf("%d days", days)
	}
	return d.Round(time.Second).String()
}

// settled returns how the cluster is once all members are reached, or two rounds later:
// a majority answers what was asked before the last one is connected.
func settled(ctx context.Context, store *paxoskv.Store) paxoskv.Status {
	ctx, cancel := context.WithTimeout(ctx, 2*store.Status().Round)
	defer cancel()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		st := store.Status()
		if st.Connected() == len(st.Members) {
			return st
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return st
		}
	}
}

func quorum(st paxoskv.Status) Finding {
	spare := len(st.Members) - st.Majority
	f := Finding{Level: OK, Subject: "quorum", Found: fmt.Sprintf("%d of %d members decide; elections go on without any %d", st.Majority, len(st.Members), spare)}
	switch {
	case spare == 0:
		f.Level, f.Why, f.Advice = Warn, "when one member is gone, nobody is elected", "use three members, or five"
	case len(st.Members)%2 == 0:
		f.Level, f.Why, f.Advice = Warn, "an even number of members tolerates no more failures than one member fewer", "use an odd number of members"
	}
	return f
}

func reachable(st paxoskv.Status) Finding {
	f := Finding{Level: OK, Subject: "members", Found: fmt.Sprintf("all %d are reached", len(st.Members))}
	away := []string{}
	for _, m := range st.Members {
		if m.Trouble != nil {
			away = append(away, fmt.Sprintf("%s: %v", m.ID, m.Trouble))
		}
	}
	if len(away) > 0 {
		f.Level, f.Found = Warn, fmt.Sprintf("%d of %d are reached; %s", st.Connected(), len(st.Members), strings.Join(away, "; "))
		f.Why = fmt.Sprintf("elections go on as long as %d are", st.Majority)
		f.Advice = "start them, or let this host reach them"
	}
	return f
}
