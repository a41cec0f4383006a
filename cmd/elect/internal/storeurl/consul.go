package storeurl

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/consul/api"

	consulkv "github.com/electkv/election/backends/consul"
	etcdkv "github.com/electkv/election/backends/etcd"
	"github.com/electkv/election/kv"
)

// consulParams are the URL parameters of Consul besides TLS.
func consulParams() []string {
	return []string{"dc", "namespace", "partition", "min-ttl", "plain", expiryParam}
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
	if token := l.user + l.password; token != "" {
		config.Token, config.TokenFile = token, ""
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
	plain, err := l.flag("plain")
	if err != nil {
		return nil, err
	}
	observed, err := l.observed()
	if err != nil {
		return nil, err
	}
	if observed && plain {
		return nil, errors.New("expiry=observer and plain exclude each other: a plain value is a leader's as long as a session holds its key, which Consul judges")
	}
	prefix := l.prefix()
	if strings.HasPrefix(prefix, "/") {
		return nil, errors.New("two slashes before the prefix; no key of Consul begins with a slash: write one")
	}
	return func(context.Context, purpose) (*Store, error) {
		client, err := api.NewClient(config)
		if err != nil {
			return nil, err
		}
		with := func(plain bool, _ etcdkv.Layout) kv.Store {
			if observed && !plain {
				return consulkv.NewObserved(client, &consulkv.ObservedOptions{Prefix: prefix})
			}
			return consulkv.New(client, &consulkv.Options{Prefix: prefix, MinTTL: minTTL, Plain: plain})
		}
		return &Store{KV: with(plain, 0), Consul: client, prefix: prefix, Observed: observed, Plain: plain, with: with, addresses: addresses}, nil
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

// forgetConsul removes a key, unless somebody holds it.
func (s *Store) forgetConsul(ctx context.Context, key string) error {
	pair, _, err := s.Consul.KV().Get(key, (&api.QueryOptions{RequireConsistent: true}).WithContext(ctx))
	if err != nil || pair == nil || pair.Session != "" {
		return err
	}
	_, _, err = s.Consul.KV().DeleteCAS(pair, (&api.WriteOptions{}).WithContext(ctx))
	return err
}
