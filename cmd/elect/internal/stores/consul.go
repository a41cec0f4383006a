package stores

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/hashicorp/consul/api"

	consulkv "github.com/electkv/election/backends/consul"
	"github.com/electkv/election/cmd/elect/internal/oldlock"
	"github.com/electkv/election/kv"
)

func consulKind() kind {
	return kind{
		name: "consul", secured: "consuls", form: "consul://host:port/prefix", parse: parseConsul,
		params:  append(tlsParams(), "dc", "namespace", "partition", "min-ttl", "plain", expiryParam),
		help:    [][2]string{{"consul://host:port/prefix", "consuls:// with TLS"}},
		secrets: []string{"CONSUL_HTTP_TOKEN", "CONSUL_HTTP_AUTH"}, instead: "CONSUL_HTTP_TOKEN or CONSUL_HTTP_TOKEN_FILE",
		others: "CONSUL_HTTP_TOKEN_FILE, CONSUL_CACERT and so on",
		besides: `consul has dc, namespace, partition and min-ttl, which is the servers'
session_ttl_min.`,
		called: "Consul", answers: isConsul, refuses: consulRefuses,
		releasable: true,
	}
}

func parseConsul(l *location) (opener, error) {
	if len(l.hosts) > 1 {
		return nil, errors.New("several hosts; a Consul agent knows its servers, so name one agent")
	}
	if len(l.hosts) == 0 && l.env("CONSUL_HTTP_ADDR") == "" {
		return nil, errors.New("no host, and no CONSUL_HTTP_ADDR")
	}
	if l.user != "" && l.password != "" {
		return nil, errors.New("a user and a password; Consul has tokens: write token@, or set CONSUL_HTTP_TOKEN")
	}
	config := api.DefaultConfig() // with the environment's CONSUL_ variables
	addresses := l.addresses("8500")
	if len(addresses) > 0 {
		config.Address, config.Scheme = addresses[0], "http"
	}
	if l.user, l.password = "", l.user+l.password; l.password != "" { // the token, which is a secret
		config.Token, config.TokenFile = l.password, ""
	}
	if dc := l.query.Get("dc"); dc != "" {
		config.Datacenter = dc
	}
	if namespace := l.query.Get("namespace"); namespace != "" {
		config.Namespace = namespace
	}
	if partition := l.query.Get("partition"); partition != "" {
		config.Partition = partition
	}
	if err := l.consulTLS(config); err != nil {
		return nil, err
	}
	minTTL, err := l.duration("min-ttl")
	if err != nil {
		return nil, err
	}
	view, err := l.view(l.prefix())
	if err != nil {
		return nil, err
	}
	if view.Observed && view.Plain {
		return nil, errors.New("expiry=observer and plain exclude each other: a plain value is a leader's as long as a session holds its key, which Consul judges")
	}
	if strings.HasPrefix(view.Prefix, "/") {
		return nil, errors.New("two slashes before the prefix; no key of Consul begins with a slash: write one")
	}
	return func(context.Context, purpose) (*Store, error) {
		client, err := api.NewClient(config)
		if err != nil {
			return nil, err
		}
		c := &consulStore{server{view: view, where: l, addresses: addresses}, client, minTTL}
		c.view.Store = c.with
		return &Store{KV: c.store(), Backend: c}, nil
	}, nil
}

// consulTLS puts TLS by the URL over TLS by the environment. A URL without TLS does not
// overrule an environment that wants it: the token would be sent in clear text.
func (l *location) consulTLS(config *api.Config) error {
	wanted, err := l.envFlag(api.HTTPSSLEnvName, false)
	if err != nil {
		return err
	}
	verify, err := l.envFlag(api.HTTPSSLVerifyEnvName, true)
	if err != nil {
		return err
	}
	secure := l.tls
	set := map[string]*string{
		"cacert":     &config.TLSConfig.CAFile,
		"cert":       &config.TLSConfig.CertFile,
		"key":        &config.TLSConfig.KeyFile,
		"servername": &config.TLSConfig.Address,
	}
	for param, field := range set {
		if s := l.query.Get(param); s != "" {
			*field, secure = s, true
		}
	}
	if l.query.Has("insecure-skip-verify") {
		skip, err := l.flag("insecure-skip-verify")
		if err != nil {
			return err
		}
		if !skip && !verify { // the client would heed the variable
			return fmt.Errorf("insecure-skip-verify=false, but %s=false: unset that, or leave the parameter out", api.HTTPSSLVerifyEnvName)
		}
		config.TLSConfig.InsecureSkipVerify, secure = skip, true
	}
	switch {
	case secure:
		config.Scheme = "https"
	case wanted && len(l.hosts) > 0:
		return fmt.Errorf("no TLS, but %s=true: write consuls://, or unset that", api.HTTPSSLEnvName)
	}
	if (config.TLSConfig.CertFile == "") != (config.TLSConfig.KeyFile == "") {
		return errors.New("cert and key go together")
	}
	if _, err := api.SetupTLSConfig(&config.TLSConfig); err != nil {
		return fmt.Errorf("TLS: %w", err)
	}
	return nil
}

// A consulStore is a Consul.
type consulStore struct {
	server
	client *api.Client
	minTTL time.Duration
}

func (c *consulStore) with(plain, observed bool, _ oldlock.Layout) kv.Store {
	if observed {
		return consulkv.NewObserved(c.client, &consulkv.ObservedOptions{Prefix: c.view.Prefix})
	}
	return consulkv.New(c.client, &consulkv.Options{Prefix: c.view.Prefix, MinTTL: c.minTTL, Plain: plain})
}

// errNoConsul is what there is to say of another server that speaks HTTP.
var errNoConsul = errors.New("the server there is not Consul: it does not know /v1/status/leader")

// Check asks whether a Consul is there at all. To another server that speaks HTTP each
// name is one that it does not have.
func (c *consulStore) Check(ctx context.Context) error {
	if _, err := c.client.Status().LeaderWithQueryOptions((&api.QueryOptions{}).WithContext(ctx)); err != nil {
		if e := (api.StatusError{}); errors.As(err, &e) && e.Code == http.StatusNotFound {
			return errNoConsul
		}
		return limited(err)
	}
	return nil
}

// limited says what Consul means by an answer before it was asked, to one connection
// too many, of which net/http makes an error without a reason.
func limited(err error) error {
	if strings.HasSuffix(err.Error(), "%!w(<nil>)") {
		return errors.New("rate limited: the agent takes no more connections from this address (its limits.http_max_conns_per_client)")
	}
	return err
}

// forget removes the key, which is left in place, and what was beside it.
func (c *consulStore) forget(ctx context.Context, name string) error {
	key := c.view.Key(name)
	return errors.Join(c.remove(ctx, key), c.remove(ctx, key+".election"))
}

// remove removes a key, unless somebody holds it.
func (c *consulStore) remove(ctx context.Context, key string) error {
	pair, _, err := c.client.KV().Get(key, (&api.QueryOptions{RequireConsistent: true}).WithContext(ctx))
	if err != nil || pair == nil || pair.Session != "" {
		return err
	}
	_, _, err = c.client.KV().DeleteCAS(pair, (&api.WriteOptions{}).WithContext(ctx))
	return err
}

func (c *consulStore) oldLocks(ctx context.Context, name string) ([]oldlock.Lock, error) {
	return oldlock.Consul(ctx, c.client, &c.view, name)
}

// observedFlags are those of a record whose expiry observers judge.
const observedFlags = 0x6f62736572766564

// names reads all keys with the prefix, in one request: Consul has no pages. A lock that is
// open may be another program's.
func (c *consulStore) names(ctx context.Context, prefix string) iter.Seq2[string, error] {
	from := c.view.Prefix + prefix
	if from == "" {
		return failing(errNoPrefix)
	}
	return func(yield func(string, error) bool) {
		pairs, _, err := c.client.KV().List(from, (&api.QueryOptions{}).WithContext(ctx))
		if err != nil {
			yield("", err)
			return
		}
		for _, pair := range pairs {
			name := strings.TrimPrefix(pair.Key, c.view.Prefix)
			if c.isElection(pair) && !yield(strings.TrimSuffix(name, companionSuffix), nil) {
				return
			}
		}
	}
}

// isElection reports whether a key, or its companion, is that of a safe.
func (c *consulStore) isElection(pair *api.KVPair) bool {
	text := string(pair.Value)
	switch {
	case c.view.Observed:
		return pair.Flags == observedFlags && !kv.DecodeObserved(text).Foreign
	case pair.Flags != api.LockFlagValue:
		return false
	case c.view.Plain:
		return strings.HasSuffix(pair.Key, companionSuffix)
	}
	return pair.Session == "" || !kv.Decode(text).Foreign
}

// Examine asks the agent about the servers, and about itself.
func (c *consulStore) Examine(ctx context.Context, _ time.Duration) []Finding {
	ctx, cancel := context.WithTimeout(ctx, CallTime)
	defer cancel()
	findings := append(monotonic(c.Observed(), "sessions", "Consul"), consulServers(ctx, c.client))
	return append(findings, c.agent(ctx)...)
}

func consulServers(ctx context.Context, client *api.Client) Finding {
	peers, err := client.Status().PeersWithQueryOptions((&api.QueryOptions{}).WithContext(ctx))
	if err != nil {
		return Finding{Level: Warn, Subject: "servers", Found: "unknown: " + err.Error()}
	}
	f := Finding{Level: OK, Subject: "servers", Found: fmt.Sprint(len(peers))}
	if len(peers) < 3 {
		f.Level, f.Why, f.Advice = Warn, "one lost server stops all elections", "run three or five"
	}
	return f
}

// agent looks at the agent's own settings, which takes the permission
// agent:read.
func (c *consulStore) agent(ctx context.Context) []Finding {
	var self struct {
		Config struct{ Version string }
		Debug  struct {
			SessionTTLMin         string
			HTTPMaxConnsPerClient *int
		} `json:"DebugConfig"`
	}
	_, err := c.client.Raw().Query("/v1/agent/self", &self, (&api.QueryOptions{}).WithContext(ctx))
	if err != nil {
		return []Finding{{Level: Warn, Subject: "agent", Found: "unknown: " + err.Error(), Advice: "give the token agent:read to learn more"}}
	}
	findings := []Finding{{Level: OK, Subject: "agent", Found: "Consul " + self.Config.Version}}
	if !c.Observed() && self.Debug.SessionTTLMin != "" && self.Debug.SessionTTLMin != "0s" {
		findings = append(findings, Finding{Level: OK, Subject: "session_ttl_min", Found: self.Debug.SessionTTLMin + ": no shorter TTL is granted; for one below 10 s say ?min-ttl= in the URL"})
	}
	if most := self.Debug.HTTPMaxConnsPerClient; most != nil {
		findings = append(findings, connections(*most))
	}
	return findings
}

// connections says what room the agent has for the processes of one address.
func connections(most int) Finding {
	f := Finding{Level: OK, Subject: "connections", Found: "any number from one address"}
	if most <= 0 {
		return f
	}
	f.Found = fmt.Sprintf("at most %d from one address, for all processes there; a candidate's takes up to %d", most, consulkv.MaxConnections)
	if most < consulkv.MaxConnections {
		f.Level = Warn
		f.Why = "a candidate that is refused a connection polls instead of waiting for news"
		f.Advice = "raise limits.http_max_conns_per_client of the agent"
	}
	return f
}

func isConsul(_ context.Context, _ string, reply []byte) bool {
	return spoken(reply) == someHTTP && bytes.HasPrefix(reply[min(9, len(reply)):], []byte("200")) && bytes.Contains(reply, []byte("\r\n\r\n\""))
}

func consulRefuses(err error) bool {
	if e, ok := errors.AsType[api.StatusError](err); ok {
		return e.Code == http.StatusForbidden || e.Code == http.StatusUnauthorized
	}
	return errors.Is(err, errNoConsul)
}
