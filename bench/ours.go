package main

import (
	"context"
	"fmt"

	"github.com/electkv/election"
	consulkv "github.com/electkv/election/backends/consul"
	etcdkv "github.com/electkv/election/backends/etcd"
	memkv "github.com/electkv/election/backends/mem"
	rediskv "github.com/electkv/election/backends/redis"
	"github.com/electkv/election/kv"
)

const (
	plainName  = "election"
	noHeirName = "election, NoHeir"
)

func ownContenders() []contender {
	var all []contender
	for _, store := range storeNames {
		all = append(all,
			contender{Name: plainName, Store: store, Kind: ours, How: "Campaign and Resign, with the default options", open: openOurs(false)},
			contender{Name: noHeirName, Store: store, Kind: ours, How: "Campaign and Resign, with Options.NoHeir", open: openOurs(true)})
	}
	return all
}

// ourFamily is this library on one store.
type ourFamily struct {
	store  kv.Store
	seat   seat
	noHeir bool
	end    func()
}

func openOurs(noHeir bool) func(seat) (family, error) {
	return func(seat seat) (family, error) {
		store, end, err := openStore(seat)
		if err != nil {
			return nil, err
		}
		return &ourFamily{store, seat, noHeir, end}, nil
	}
}

// openStore returns the library's store for a server, with the defaults of its client.
func openStore(seat seat) (_ kv.Store, end func(), _ error) {
	switch seat.Store {
	case inMemory:
		return memkv.New(), func() {}, nil
	case inEtcd:
		client, err := etcdClient(seat.Addr)
		if err != nil {
			return nil, nil, err
		}
		return etcdkv.New(client, nil), func() { client.Close() }, nil
	case inConsul:
		client, err := consulClient(seat.Addr)
		if err != nil {
			return nil, nil, err
		}
		return consulkv.New(client, &consulkv.Options{MinTTL: consulMinTTL}), func() {}, nil
	case inRedis:
		client := redisClient(seat.Addr)
		return rediskv.New(client, nil), func() { client.Close() }, nil
	}
	return nil, nil, fmt.Errorf("bench: there is no store %q", seat.Store)
}

func (f *ourFamily) close() { f.end() }

func (f *ourFamily) candidate(place place) (candidate, error) {
	c, err := election.New(f.store, place.Election, &election.Options{ID: place.id(), TTL: f.seat.TTL, NoHeir: f.noHeir})
	if err != nil {
		return nil, err
	}
	return ourCandidate{c}, nil
}

type ourCandidate struct{ c *election.Candidate }

func (c ourCandidate) acquire(ctx context.Context) (*held, error) {
	term, err := c.c.Campaign(ctx)
	if err != nil {
		return nil, err
	}
	return &held{release: term.Resign, lost: term.Context().Done(), until: term.Until}, nil
}
