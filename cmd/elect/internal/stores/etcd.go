package stores

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	etcdkv "github.com/electkv/election/backends/etcd"
	"github.com/electkv/election/cmd/elect/internal/oldlock"
	"github.com/electkv/election/kv"
)

func etcdKind() kind {
	return kind{
		name: "etcd", secured: "etcds", form: "etcd://host:port[,host:port...]/prefix", parse: parseEtcd,
		params:  append(tlsParams(), "layout", "suffix", "plain", expiryParam),
		help:    [][2]string{{"etcd://host:port,host:port/prefix", "etcds:// with TLS"}},
		secrets: []string{"ETCDCTL_USER", "ETCDCTL_PASSWORD"}, instead: "ETCDCTL_PASSWORD",
		others: "ETCDCTL_CACERT, ETCDCTL_ENDPOINTS and so on",
		called: "etcd", onlyHTTP2: true, answers: isEtcd, refuses: etcdRefuses,
		releasable: true,
	}
}

func parseEtcd(l *location) (opener, error) {
	if len(l.hosts) == 0 {
		if err := l.etcdEndpoints(); err != nil {
			return nil, err
		}
	}
	secure, err := l.etcdTLS()
	if err != nil {
		return nil, err
	}
	addresses := l.addresses("2379")
	config := clientv3.Config{
		Endpoints: slices.Clone(addresses),
		TLS:       secure,
		Username:  l.user,
		Password:  l.password,
		Logger:    zap.NewNop(), // what fails comes back as an error as well
		// Without these, a call waits for its whole context on a dead connection.
		DialTimeout:          5 * time.Second,
		DialKeepAliveTime:    5 * time.Second,
		DialKeepAliveTimeout: 5 * time.Second,
	}
	if secure != nil {
		for i, endpoint := range config.Endpoints {
			config.Endpoints[i] = "https://" + endpoint
		}
	}
	if config.Username == "" {
		config.Username, config.Password, _ = strings.Cut(l.env("ETCDCTL_USER"), ":")
	}
	if config.Password == "" && config.Username != "" {
		config.Password = l.env("ETCDCTL_PASSWORD")
	}
	if config.Username != "" && config.Password == "" {
		return nil, errors.New("a user without a password: write user:password@, or set ETCDCTL_PASSWORD")
	}
	layout, err := l.layout()
	if err != nil {
		return nil, err
	}
	view, err := l.view(l.prefix())
	if err != nil {
		return nil, err
	}
	view.Suffix, view.Layout = l.query.Get("suffix"), layout
	if view.Observed && (view.Plain || layout != oldlock.OneKey) {
		return nil, errors.New("expiry=observer excludes plain and the layouts queue and claim: those records end with their lease, which etcd judges")
	}
	return func(ctx context.Context, _ purpose) (*Store, error) {
		client, err := l.connect(ctx, config, addresses)
		if err != nil {
			return nil, err
		}
		e := &etcdStore{server{view: view, where: l, addresses: addresses}, client}
		e.view.Store = e.with
		return &Store{KV: e.store(), Backend: e}, nil
	}, nil
}

// An etcdStore is an open etcd.
type etcdStore struct {
	server
	client *clientv3.Client
}

func (e *etcdStore) with(plain, observed bool, layout oldlock.Layout) kv.Store {
	if observed {
		return etcdkv.NewObserved(e.client, &etcdkv.ObservedOptions{Prefix: e.view.Prefix, Suffix: e.view.Suffix})
	}
	opts := &etcdkv.Options{Prefix: e.view.Prefix, Suffix: e.view.Suffix, Plain: plain}
	switch layout {
	case oldlock.Queue:
		return etcdkv.NewQueue(e.client, opts)
	case oldlock.Claim:
		opts.Layout = etcdkv.Claim
	case oldlock.OneKey:
	}
	return etcdkv.New(e.client, opts)
}

// Close implements [Backend].
func (e *etcdStore) Close() error { return e.client.Close() }

// connect returns a client that is logged in, if there is a user. Nothing but that
// ends with the context of the opening.
func (l *location) connect(ctx context.Context, config clientv3.Config, addresses []string) (*clientv3.Client, error) {
	var end context.CancelFunc
	config.Context, end = context.WithCancel(context.WithoutCancel(ctx))
	opened := context.AfterFunc(ctx, end)
	client, err := clientv3.New(config)
	if !opened() && err == nil {
		err = errors.Join(context.Cause(ctx), client.Close())
	}
	if err == nil {
		return client, nil
	}
	end()
	err = fmt.Errorf("connect and log in: %w", err)
	if IsRefusal(err) {
		return nil, err
	}
	there := l.reachable(context.WithoutCancel(ctx), addresses, true)
	return nil, away{fmt.Errorf("%w; %s", err, there)}
}

// etcdTLS returns nil for no TLS, which an environment that wants it does not allow.
func (l *location) etcdTLS() (*tls.Config, error) {
	secure, err := l.tlsConfig(tlsSource{
		caCert:     "ETCDCTL_CACERT",
		cert:       "ETCDCTL_CERT",
		key:        "ETCDCTL_KEY",
		skipVerify: "ETCDCTL_INSECURE_SKIP_TLS_VERIFY",
	})
	if err != nil {
		return nil, err
	}
	plain, err := l.envFlag("ETCDCTL_INSECURE_TRANSPORT", true)
	if err == nil && secure == nil && !plain {
		err = errors.New("no TLS, but ETCDCTL_INSECURE_TRANSPORT=false: write etcds://, or unset that")
	}
	return secure, err
}

// layout returns what the parameter says of how a safe is laid out.
func (l *location) layout() (oldlock.Layout, error) {
	switch layout := oldlock.Layout(l.query.Get("layout")); layout {
	case "":
		return oldlock.OneKey, nil
	case oldlock.OneKey, oldlock.Queue, oldlock.Claim:
		return layout, nil
	}
	return "", errors.New(`parameter "layout" is none of key, queue and claim`)
}

// etcdEndpoints takes the hosts from the environment, as etcdctl does.
func (l *location) etcdEndpoints() error {
	endpoints := l.env("ETCDCTL_ENDPOINTS")
	if endpoints == "" {
		return errors.New("no host, and no ETCDCTL_ENDPOINTS")
	}
	hosts := []string{}
	for endpoint := range strings.SplitSeq(endpoints, ",") {
		if rest, ok := strings.CutPrefix(endpoint, "https://"); ok {
			l.tls = true
			endpoint = rest
		}
		hosts = append(hosts, strings.TrimPrefix(endpoint, "http://"))
	}
	l.slashes = true
	return l.authority(strings.Join(hosts, ","))
}

func (e *etcdStore) oldLocks(ctx context.Context, name string) ([]oldlock.Lock, error) {
	return oldlock.Etcd(ctx, e.client, &e.view, name)
}

// page is how many keys a listing reads at once.
const page = 256

// names reads all keys with the prefix. Without their values it could not tell which are
// elections.
func (e *etcdStore) names(ctx context.Context, prefix string) iter.Seq2[string, error] {
	from := e.view.Prefix + prefix
	if from == "" {
		return failing(errNoPrefix)
	}
	end := clientv3.GetPrefixRangeEnd(from)
	return func(yield func(string, error) bool) {
		for {
			got, err := e.client.Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(page))
			if err != nil {
				yield("", err)
				return
			}
			for _, pair := range got.Kvs {
				if name, ok := e.nameAt(string(pair.Key), string(pair.Value)); ok && !yield(name, nil) {
					return
				}
			}
			if !got.More {
				return
			}
			from = string(got.Kvs[len(got.Kvs)-1].Key) + "\x00"
		}
	}
}

// nameAt returns the name of the safe to which a key belongs, if it has a record's text.
func (e *etcdStore) nameAt(key, value string) (string, bool) {
	decode := kv.Decode
	if e.view.Observed {
		decode = kv.DecodeObserved
	}
	name, ok := strings.CutPrefix(key, e.view.Prefix)
	if e.view.Layout != oldlock.OneKey {
		slash := strings.LastIndexByte(name, '/')
		name, ok = name[:max(slash, 0)], ok && slash > 0
	}
	companion := true
	if e.view.Plain {
		name, companion = strings.CutSuffix(name, companionSuffix)
	}
	name, whole := strings.CutSuffix(name, e.view.Suffix)
	return name, ok && companion && whole && !decode(value).Foreign
}

// Examine asks each member of the URL, and one about all.
func (e *etcdStore) Examine(ctx context.Context, _ time.Duration) []Finding {
	findings := monotonic(e.Observed(), "leases", "etcd")
	for _, endpoint := range e.client.Endpoints() {
		findings = append(findings, etcdEndpoint(ctx, e.client, endpoint))
	}
	return append(findings, etcdMembers(ctx, e.client), etcdAlarms(ctx, e.client))
}

func etcdEndpoint(ctx context.Context, client *clientv3.Client, endpoint string) Finding {
	ctx, cancel := context.WithTimeout(ctx, CallTime)
	defer cancel()
	status, err := client.Status(ctx, endpoint)
	if errors.Is(err, rpctypes.ErrPermissionDenied) {
		return Finding{OK, "endpoint " + endpoint, "etcd; only the role root may read its version", "before 3.4.38, 3.5.23 and 3.6.5 etcd may renew a lease that was revoked", "ask its operator, or run elect doctor with that role"}
	}
	if err != nil {
		return Finding{Warn, "endpoint " + endpoint, err.Error(), "a candidate that meets it has to wait for another", "repair it, or take it out of the URL"}
	}
	f := Finding{Level: OK, Subject: "endpoint " + endpoint, Found: "etcd " + status.Version}
	switch {
	case status.Leader == 0:
		return Finding{Fail, f.Subject, f.Found + ", without a leader", "nothing can be written", "see that a majority of the members runs"}
	case !fixedRevoke(status.Version):
		f.Level, f.Why, f.Advice = Warn, "it may renew a lease that was revoked", "use 3.4.38, 3.5.23, 3.6.5 or later"
	}
	return f
}

// fixedRevoke reports whether a version never renews a revoked lease.
func fixedRevoke(version string) bool {
	var major, minor, patch int
	if _, err := fmt.Sscanf(version, "%d.%d.%d", &major, &minor, &patch); err != nil {
		return false
	}
	least, ok := map[int]int{4: 38, 5: 23, 6: 5}[minor]
	return major > 3 || major == 3 && (minor > 6 || ok && patch >= least)
}

func etcdMembers(ctx context.Context, client *clientv3.Client) Finding {
	ctx, cancel := context.WithTimeout(ctx, CallTime)
	defer cancel()
	list, err := client.MemberList(ctx)
	if err != nil {
		return etcdUnknown("members", err)
	}
	f := Finding{Level: OK, Subject: "members", Found: fmt.Sprint(len(list.Members))}
	if len(list.Members) < 3 {
		f.Level, f.Why, f.Advice = Warn, "one lost member stops all elections", "run three or five"
	}
	return f
}

func etcdAlarms(ctx context.Context, client *clientv3.Client) Finding {
	ctx, cancel := context.WithTimeout(ctx, CallTime)
	defer cancel()
	list, err := client.AlarmList(ctx)
	if err != nil {
		return etcdUnknown("alarms", err)
	}
	for _, alarm := range list.Alarms {
		if alarm.Alarm != pb.AlarmType_NONE {
			return Finding{Fail, "alarms", alarm.Alarm.String(), "leaders keep their leases, and nobody new can be elected", "see the etcd manual on alarms, then etcdctl alarm disarm"}
		}
	}
	return Finding{Level: OK, Subject: "alarms", Found: "none"}
}

// etcdUnknown says that etcd did not tell of something.
func etcdUnknown(subject string, err error) Finding {
	if errors.Is(err, rpctypes.ErrPermissionDenied) {
		return Finding{Level: OK, Subject: subject, Found: "only the role root may read them"}
	}
	return Finding{Level: Warn, Subject: subject, Found: "unknown: " + err.Error()}
}

// isEtcd asks another question of what speaks HTTP.
func isEtcd(ctx context.Context, addr string, reply []byte) bool {
	return spoken(reply) == someHTTP && bytes.Contains(ask(ctx, addr, "GET /version HTTP/1.0\r\n\r\n"), []byte(`"etcdserver"`))
}

func etcdRefuses(err error) bool {
	return errors.Is(err, rpctypes.ErrAuthFailed) || errors.Is(err, rpctypes.ErrUserEmpty) || errors.Is(err, rpctypes.ErrPermissionDenied)
}
