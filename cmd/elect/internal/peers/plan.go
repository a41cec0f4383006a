package peers

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// A Plan says who takes part in a cluster, and how. It is what cluster.json has.
type Plan struct {
	// Cluster is its name.
	Cluster string `json:"cluster"`
	// Peers are the addresses of all members, host:port.
	Peers []string `json:"peers"`
	// Clients are the names of those that may ask the members.
	Clients []string `json:"clients,omitempty"`
	// ValidFor is how long certificates are good.
	ValidFor Span `json:"valid_for"`
	// Files is the folder on each host that gets its files. Empty: they stay where they
	// are made.
	Files string `json:"files,omitempty"`
	// State is the folder on each host in which its member keeps what it has promised.
	// Empty: it is beside the files.
	State string `json:"state,omitempty"`
	// Parameters are more of the URLs, such as max-ttl=30s.
	Parameters string `json:"parameters,omitempty"`
}

// A Span is a duration that JSON has as text.
type Span time.Duration

// MarshalText implements [encoding.TextMarshaler].
func (s Span) MarshalText() ([]byte, error) { return []byte(time.Duration(s).String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (s *Span) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	*s = Span(d)
	return err
}

// maxPeers is the most that the members themselves accept.
const maxPeers = 15

// plainName is the form of names of clusters and clients, which are in paths and URLs.
var plainName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,49}$`)

// Check returns the plan with addresses as the members write them, or what is wrong with
// it.
func (p Plan) Check() (Plan, error) {
	if !plainName.MatchString(p.Cluster) {
		return p, fmt.Errorf("cluster %q: name it with up to 50 letters, digits, dots, hyphens and underscores, such as nightly", p.Cluster)
	}
	peers := []string{}
	for _, s := range p.Peers {
		addr, err := address(s)
		if err != nil {
			return p, err
		}
		for _, other := range peers {
			switch {
			case addr == other:
				return p, fmt.Errorf("member %q is named twice", addr)
			case p.Files != "" && hostOf(addr) == hostOf(other):
				return p, fmt.Errorf("members %q and %q are on one host, and would share their folders there: name one member per host, or try all on this host with --here", other, addr)
			}
		}
		peers = append(peers, addr)
	}
	switch {
	case len(peers) == 0:
		return p, errors.New("no members: name the address of each, host:port")
	case len(peers) > maxPeers:
		return p, fmt.Errorf("%d members, where %d are the most: three go on without one, five without two", len(peers), maxPeers)
	case time.Duration(p.ValidFor) < time.Second:
		return p, fmt.Errorf("certificates that are valid for %v: use 1s or more", time.Duration(p.ValidFor))
	}
	p.Peers = peers
	return p, errors.Join(p.checkClients(), checkPath(p.Files), checkPath(p.State))
}

func (p Plan) checkClients() error {
	for i, name := range p.Clients {
		switch {
		case !plainName.MatchString(name):
			return fmt.Errorf("client %q: name it with up to 50 letters, digits, dots, hyphens and underscores, such as laptop", name)
		case slices.Contains(p.Clients[:i], name):
			return fmt.Errorf("client %q is named twice", name)
		case slices.ContainsFunc(p.Peers, func(peer string) bool { return folderOf(peer) == name }):
			return fmt.Errorf("client %q has the name of a member's folder", name)
		}
	}
	return nil
}

// checkPath refuses paths that cannot be written into elect.env.
func checkPath(path string) error {
	switch {
	case path != "" && !filepath.IsAbs(path):
		return fmt.Errorf("folder %q: write its whole path, as it is on the members' hosts", path)
	case strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == '\'' || r == '\\' }):
		return fmt.Errorf("folder %q has quotes, backslashes or control characters in it", path)
	}
	return nil
}

// Doubt says what speaks against the number of members, or nothing.
func (p Plan) Doubt() string {
	switch n := len(p.Peers); {
	case n == 1:
		return "one member alone decides: when it is gone, nobody is elected: use three, or five"
	case n == 2:
		return "when one of two members is gone, nobody is elected: use three, or five"
	case n%2 == 0:
		return fmt.Sprintf("%d members go on without %d of them, and so do %d: the last one only adds a host that can fail; use %d or %d",
			n, (n-1)/2, n-1, n-1, n+1)
	}
	return ""
}

// URL returns the store of a member, or, with no address, of a client. dir is where the
// cluster's folder is, if the files stay there.
func (p Plan) URL(dir, peer string) string {
	u := "paxos://" + peer + "?cluster=" + p.Cluster + "&peers=" + strings.Join(p.Peers, ",")
	if peer != "" {
		u += "&dir=" + escape(p.state(dir, peer))
	}
	more := p.Parameters
	if peer == "" {
		more = without(more, "founding", "listen") // which a client has not
	}
	if more != "" {
		u += "&" + more
	}
	return u
}

// without returns parameters of a URL without some.
func without(parameters string, names ...string) string {
	return strings.Join(slices.DeleteFunc(strings.Split(parameters, "&"), func(part string) bool {
		name, _, _ := strings.Cut(part, "=")
		return slices.Contains(names, name)
	}), "&")
}

// escape writes a path as it stands in the query of a URL.
func escape(path string) string { return strings.ReplaceAll(url.QueryEscape(path), "%2F", "/") }

// at returns the folder with the files that a member or client uses.
func (p Plan) at(dir, who string) string {
	if p.Files == "" {
		return filepath.Join(dir, folderOf(who))
	}
	return p.Files
}

func (p Plan) state(dir, peer string) string {
	if p.State == "" {
		return filepath.Join(p.at(dir, peer), "state")
	}
	return p.State
}

// environment is what elect.env has.
func (p Plan) environment(dir, who string) []byte {
	peer, at := who, p.at(dir, who)
	if !p.member(who) {
		peer = ""
	}
	return fmt.Appendf(nil, `# What elect needs as %s: EnvironmentFile= in a unit of systemd, or in a shell
# set -a; . %[2]s/%[3]s; set +a
ELECT_STORE='%[4]s'
ELECT_CERT='%[2]s/%[5]s'
ELECT_KEY='%[2]s/%[5]s'
ELECT_CACERT='%[2]s/%[6]s'
`, who, at, EnvFile, p.URL(dir, peer), PairFile, AuthorityFile)
}

func (p Plan) member(who string) bool { return slices.Contains(p.Peers, who) }

// all returns the members and the clients.
func (p Plan) all() []string { return slices.Concat(p.Peers, p.Clients) }

// folderOf returns the name of the folder of a member or a client.
func folderOf(who string) string {
	return strings.NewReplacer(":", "_", "[", "", "]", "").Replace(who)
}

func (p Plan) text() ([]byte, error) {
	text, err := json.MarshalIndent(p, "", "  ")
	return append(text, '\n'), err
}
