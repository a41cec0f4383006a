//go:build linux

package interop

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/electkv/election"
	consulkv "github.com/electkv/election/backends/consul"
	etcdkv "github.com/electkv/election/backends/etcd"
	rediskv "github.com/electkv/election/backends/redis"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/witness"
	"github.com/electkv/election/kv"
)

// The stores in part.Store.
const (
	inRedis  = "redis"
	inConsul = "consul"
	inEtcd   = "etcd"
)

// The layouts of safes in etcd, in part.Layout.
const (
	layoutQueue = "queue"
	layoutClaim = "claim"
)

// open opens the store in which ours shares the lock's key, and returns the name
// of the election.
func (p part) open() (store kv.Store, name string, closeStore func(), err error) {
	switch p.Store {
	case inRedis:
		client := redis.NewClient(&redis.Options{
			Addr: p.Addr, ContextTimeoutEnabled: true, DisableIdentity: true,
			Dialer: (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
		})
		return rediskv.New(client, &rediskv.Options{Prefix: p.Prefix, Plain: p.Plain, Backstop: p.Backstop}), p.Key, func() { client.Close() }, nil
	case inConsul:
		client, err := p.consul()
		if err != nil {
			return nil, "", nil, err
		}
		return consulkv.New(client, &consulkv.Options{MinTTL: time.Second, Plain: p.Plain}), p.Key + p.Suffix, func() {}, nil
	case inEtcd:
		client, err := p.etcd()
		if err != nil {
			return nil, "", nil, err
		}
		opts := &etcdkv.Options{Prefix: p.Prefix, Suffix: p.Suffix, Plain: p.Plain}
		store = etcdkv.NewQueue(client, opts)
		if p.Layout == layoutClaim {
			opts.Layout = etcdkv.Claim
			store = etcdkv.New(client, opts)
		}
		return store, p.Key, func() { client.Close() }, nil
	}
	return nil, "", nil, fmt.Errorf("unknown store %q", p.Store)
}

// line returns what the old locks in etcd are told as their own prefix.
func (p part) line() string { return p.Prefix + p.Key + p.Suffix }

func (p part) etcd() (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{
		Endpoints: []string{p.Addr}, Logger: zap.NewNop(), DialTimeout: 5 * time.Second,
		DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: time.Second,
	})
}

// lead stands in the election again and again. Each term has a value of its own,
// by which its record is told from all others in the store.
func (p *process) lead(ctx context.Context) error {
	store, name, closeStore, err := p.open()
	if err != nil {
		return err
	}
	defer closeStore()
	if p.Bug != "" {
		if store, err = p.plant(store, name); err != nil {
			return err
		}
	}
	l := &leader{process: p}
	l.Witness = witness.New(p.Who, l.publish)
	store = l.Observe(store, name)
	for ctx.Err() == nil {
		l.value = p.sign()
		options := election.Options{ID: p.Who, Value: l.value, TTL: p.TTL, Logger: p.log}
		options.NoHeir = p.Who == "new-1" // else the old ones would have a turn after a crash alone
		candidate, err := election.New(store, name, &options)
		if err != nil {
			return err
		}
		once, cancel := context.WithCancelCause(ctx)
		err = candidate.Run(once, func(ctx context.Context, term *election.Term) error {
			defer cancel(errOver) // also if the term was lost: the next one has another value
			return l.lead(ctx, term)
		})
		cancel(nil)
		if err != nil && ctx.Err() == nil && !errors.Is(err, errOver) {
			return err
		}
		pass(ctx, between(p.Rest))
	}
	return nil
}

var errOver = errors.New("the term is over")

// A leader writes down what it believes before it acts on it.
type leader struct {
	*process
	*witness.Witness
	value string // of its present term
}

// publish tells the fleet of an event, and how the record of a term is told from all others.
func (l *leader) publish(e history.Event) {
	if e.Kind == history.Elected {
		e.Value, e.Text = l.value, l.value
		if l.Store == inEtcd {
			e.Value = numbered(l.value, e.Token)
		}
	}
	l.tell(e)
}

// lead works in small steps, and asks before each of them whether it may.
func (l *leader) lead(ctx context.Context, term *election.Term) error {
	l.forget()
	if !l.Begin(ctx, term) {
		return nil
	}
	cause := "the work panicked"
	defer func() { l.End(cause) }()
	turn, step := time.NewTimer(l.turn()), time.NewTicker(20*time.Millisecond)
	defer turn.Stop()
	defer step.Stop()
	news := time.NewTicker(l.TTL / 4)
	defer news.Stop()
	quiet := rand.N(2) == 0 // so that nothing but its refreshes and its watch tells it of a loss
	for {
		if ctx.Err() != nil {
			cause = context.Cause(ctx).Error()
			return nil
		}
		l.Confess()
		select {
		case <-ctx.Done():
		case <-step.C:
		case <-news.C:
			if quiet {
				continue
			}
			// Whether that succeeds is no promise. If the term is over, ctx will tell.
			_ = term.Proclaim(ctx, fmt.Sprintf("%s/%d", l.value, time.Now().UnixNano()))
		case <-turn.C:
			cause = "its turn is over"
			return nil
		case <-l.orders:
			cause = "told to give up"
			return nil
		}
	}
}
