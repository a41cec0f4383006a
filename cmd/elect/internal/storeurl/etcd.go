package storeurl

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	etcdkv "github.com/electkv/election/backends/etcd"
	"github.com/electkv/election/kv"
)

// etcdParams are the URL parameters of etcd besides TLS.
func etcdParams() []string { return []string{"layout", "suffix", "plain", expiryParam} }

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
	plain, err := l.flag("plain")
	if err != nil {
		return nil, err
	}
	observed, err := l.observed()
	if err != nil {
		return nil, err
	}
	if observed && (plain || layout != etcdkv.OneKey) {
		return nil, errors.New("expiry=observer excludes plain and the layouts queue and claim: those records end with their lease, which etcd judges")
	}
	prefix, suffix := l.prefix(), l.query.Get("suffix")
	return func(ctx context.Context, _ purpose) (*Store, error) {
		client, err := l.connect(ctx, config, addresses)
		if err != nil {
			return nil, err
		}
		with := func(plain bool, layout etcdkv.Layout) kv.Store {
			if observed && !plain && layout == etcdkv.OneKey {
				return etcdkv.NewObserved(client, &etcdkv.ObservedOptions{Prefix: prefix, Suffix: suffix})
			}
			return etcdkv.New(client, &etcdkv.Options{Prefix: prefix, Suffix: suffix, Plain: plain, Layout: layout})
		}
		return &Store{KV: with(plain, layout), Etcd: client, closer: client, prefix: prefix, suffix: suffix, Observed: observed, Plain: plain, Layout: layout, with: with, addresses: addresses}, nil
	}, nil
}

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
	there := (&Address{Kind: "etcd", where: l}).reachable(context.WithoutCancel(ctx), addresses, true)
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
func (l *location) layout() (etcdkv.Layout, error) {
	value := l.query.Get("layout")
	for _, layout := range []etcdkv.Layout{etcdkv.OneKey, etcdkv.Queue, etcdkv.Claim} {
		if value == layout.String() {
			return layout, nil
		}
	}
	if value != "" {
		return 0, errors.New(`parameter "layout" is none of key, queue and claim`)
	}
	return etcdkv.OneKey, nil
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
