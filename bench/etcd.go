package main

import (
	"context"
	"fmt"
	"math"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
)

func etcdClient(addr string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{Endpoints: []string{addr}, Logger: zap.NewNop()})
}

func etcdPeers() []contender {
	return []contender{
		{
			Name: "concurrency.Mutex", Store: inEtcd, Kind: peer,
			How:  "one Session per candidate, kept from one lock to the next",
			open: openConcurrency(newMutex),
		},
		{
			Name: "concurrency.Election", Store: inEtcd, Kind: peer,
			How:  "one Session per candidate, kept from one campaign to the next",
			open: openConcurrency(newElection),
		},
		{
			Name: "limit", Store: inEtcd, Kind: limit,
			How:  "no election: a put and a delete; a hand-over is one put, seen by a watch of the next one's key",
			open: openEtcdBaton,
		},
	}
}

// concurrencyFamily is package concurrency of etcd's client.
type concurrencyFamily struct {
	client *clientv3.Client
	ttl    time.Duration
	make   func(session *concurrency.Session, place place) candidate
}

func openConcurrency(make func(*concurrency.Session, place) candidate) func(seat) (family, error) {
	return func(seat seat) (family, error) {
		client, err := etcdClient(seat.Addr)
		if err != nil {
			return nil, err
		}
		return &concurrencyFamily{client, seat.TTL, make}, nil
	}
}

func (f *concurrencyFamily) close() { f.client.Close() }

func (f *concurrencyFamily) candidate(place place) (candidate, error) {
	seconds := int(math.Ceil(f.ttl.Seconds()))
	session, err := concurrency.NewSession(f.client, concurrency.WithTTL(seconds))
	if err != nil {
		return nil, err
	}
	return f.make(session, place), nil
}

type mutexCandidate struct {
	session *concurrency.Session
	mutex   *concurrency.Mutex
}

func newMutex(session *concurrency.Session, place place) candidate {
	return mutexCandidate{session, concurrency.NewMutex(session, place.Election)}
}

func (c mutexCandidate) acquire(ctx context.Context) (*held, error) {
	if err := c.mutex.Lock(ctx); err != nil {
		return nil, err
	}
	return &held{release: c.mutex.Unlock, lost: c.session.Done()}, nil
}

type electionCandidate struct {
	session  *concurrency.Session
	election *concurrency.Election
	id       string
}

func newElection(session *concurrency.Session, place place) candidate {
	return electionCandidate{session, concurrency.NewElection(session, place.Election), place.id()}
}

func (c electionCandidate) acquire(ctx context.Context) (*held, error) {
	if err := c.election.Campaign(ctx, c.id); err != nil {
		return nil, err
	}
	return &held{release: c.election.Resign, lost: c.session.Done()}, nil
}

// etcdBaton is the fewest steps on etcd: see baton.
type etcdBaton struct{ client *clientv3.Client }

func openEtcdBaton(seat seat) (family, error) {
	client, err := etcdClient(seat.Addr)
	return batonFamily{etcdBaton{client}}, err
}

func (b etcdBaton) close() { b.client.Close() }

func (b etcdBaton) put(ctx context.Context, key string) error {
	_, err := b.client.Put(ctx, key, "1")
	return err
}

func (b etcdBaton) remove(ctx context.Context, key string) error {
	_, err := b.client.Delete(ctx, key)
	return err
}

func (b etcdBaton) await(ctx context.Context, key string, armed func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for resp := range b.client.Watch(ctx, key, clientv3.WithCreatedNotify()) {
		if err := resp.Err(); err != nil {
			return err
		}
		if resp.Created {
			armed()
		}
		for _, event := range resp.Events {
			if event.IsCreate() || event.Type == clientv3.EventTypePut {
				return nil
			}
		}
	}
	return fmt.Errorf("bench: the watch of %s ended: %w", key, context.Cause(ctx))
}
