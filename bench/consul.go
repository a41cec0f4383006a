package main

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/consul/api"
)

// consulMinTTL is session_ttl_min of the servers of testenv.
const consulMinTTL = time.Second

func consulClient(addr string) (*api.Client, error) {
	config := api.DefaultConfig()
	config.Address = addr
	return api.NewClient(config)
}

func consulPeers() []contender {
	return []contender{
		{
			Name: "api.Lock", Store: inConsul, Kind: peer,
			How:  "LockOpts with SessionTTL; a Lock makes its Session when it locks, and has the lock-delay of 15 s after a crash",
			open: openAPILock,
		},
		{
			Name: "limit", Store: inConsul, Kind: limit,
			How:  "no election: a put and a delete; a hand-over is one put, seen by a blocking query of the next one's key",
			open: openConsulBaton,
		},
	}
}

type apiLockFamily struct {
	client *api.Client
	ttl    time.Duration
}

func openAPILock(seat seat) (family, error) {
	client, err := consulClient(seat.Addr)
	return apiLockFamily{client, seat.TTL}, err
}

func (f apiLockFamily) close() {}

func (f apiLockFamily) candidate(place place) (candidate, error) {
	lock, err := f.client.LockOpts(&api.LockOptions{
		Key: place.Election, Value: []byte(place.id()), SessionName: place.id(), SessionTTL: f.ttl.String(),
	})
	return apiLockCandidate{lock}, err
}

type apiLockCandidate struct{ lock *api.Lock }

func (c apiLockCandidate) acquire(ctx context.Context) (*held, error) {
	lost, err := c.lock.Lock(ctx.Done())
	if err == nil && lost == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	return &held{release: func(context.Context) error { return c.lock.Unlock() }, lost: lost}, nil
}

// consulBaton is the fewest steps on Consul: see baton.
type consulBaton struct{ kv *api.KV }

func openConsulBaton(seat seat) (family, error) {
	client, err := consulClient(seat.Addr)
	if err != nil {
		return nil, err
	}
	return batonFamily{consulBaton{client.KV()}}, nil
}

func (b consulBaton) close() {}

func (b consulBaton) put(ctx context.Context, key string) error {
	value := []byte(now().String()) // Consul makes nothing of a put that changes nothing
	_, err := b.kv.Put(&api.KVPair{Key: key, Value: value}, new(api.WriteOptions).WithContext(ctx))
	return err
}

func (b consulBaton) remove(ctx context.Context, key string) error {
	_, err := b.kv.Delete(key, new(api.WriteOptions).WithContext(ctx))
	return err
}

func (b consulBaton) await(ctx context.Context, key string, armed func()) error {
	var index, modified uint64
	for first := true; ; first = false {
		pair, meta, err := b.kv.Get(key, (&api.QueryOptions{WaitIndex: index, RequireConsistent: true}).WithContext(ctx))
		switch {
		case err != nil:
			return errors.Join(err, context.Cause(ctx))
		case pair != nil && !first && pair.ModifyIndex != modified:
			return nil
		case pair != nil:
			modified = pair.ModifyIndex
		}
		index = meta.LastIndex
		if first {
			armed()
		}
	}
}
