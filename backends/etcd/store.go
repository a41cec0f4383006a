package etcdkv

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/electkv/election/kv"
)

// Options tune a [Store]. The zero value means the defaults.
type Options struct {
	// Prefix is put before a safe's name to make its key, with nothing between
	// the two: "elections/", say. By default the name is the key.
	Prefix string

	// Backstop is about how often a watch of an unchanged safe reads its key,
	// in case its connection has died without a sign. Zero or less means one
	// minute.
	Backstop time.Duration
}

// A Store is a [kv.Store] in etcd. Use [New] to make one. It keeps no state of
// its own: any number of them may share the client and the safes.
type Store struct {
	client   *clientv3.Client
	prefix   string
	backstop time.Duration
}

var _ kv.Store = (*Store)(nil)

// New returns a store that uses the client, and never closes it. Options may be
// nil.
func New(client *clientv3.Client, opts *Options) *Store {
	s := &Store{client: client, backstop: time.Minute}
	if opts == nil {
		return s
	}
	s.prefix = opts.Prefix
	if opts.Backstop > 0 {
		s.backstop = opts.Backstop
	}
	return s
}

// Create implements [kv.Store]: a LeaseGrant, then one Txn that puts the record
// with that lease if the key does not exist. A read before it spares both if
// the safe is seen to be held.
//
// A lost reply leaves a lease behind, with the record or without it; it fades
// by itself, since nobody keeps it alive.
func (s *Store) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	sf, err := s.open(ctx, name)
	if err == nil {
		rec, err = sf.create(ctx, rec)
	}
	return outcome(ctx, "create", name, rec, err)
}

// Swap implements [kv.Store]: a read that tells whether the safe holds old, then
// one Txn that puts the new record if the key's ModRevision is still the one
// read. Between the two, a takeover has a lease granted, and a hand-over keeps the
// heir's alive and finds a key that has it: its Txn requires that this still is
// so, and is made anew with another key of that lease if only this has changed.
func (s *Store) Swap(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
	sf, err := s.open(ctx, name)
	if err == nil {
		next, err = sf.swap(ctx, old, next)
	}
	return outcome(ctx, "swap", name, next, err)
}

// Refresh implements [kv.Store]: a LeaseKeepAlive, then a linearizable read that
// proves that the key still holds the record, with the same lease. The
// keep-alive alone proves nothing, since a lease outlives its key.
func (s *Store) Refresh(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	sf, err := s.open(ctx, name)
	if err == nil {
		rec, err = sf.refresh(ctx, rec)
	}
	return outcome(ctx, "refresh", name, rec, err)
}

// Delete implements [kv.Store]: a read that tells whether the safe holds rec,
// then one Txn that deletes the key if its ModRevision is still the one read;
// both again if a new value came between them. At last a LeaseRevoke, unless
// another key has the lease.
//
// If the lease could not be revoked, the error says so although the safe has
// been emptied. The lease fades by itself.
func (s *Store) Delete(ctx context.Context, name string, rec kv.Record) error {
	sf, err := s.open(ctx, name)
	if err == nil {
		err = sf.delete(ctx, rec)
	}
	_, err = outcome(ctx, "delete", name, kv.Record{}, err)
	return err
}

// Get implements [kv.Store]: one linearizable read.
func (s *Store) Get(ctx context.Context, name string) (kv.Record, error) {
	var rec kv.Record
	sf, err := s.open(ctx, name)
	if err == nil {
		rec, _, err = sf.look(ctx)
	}
	return outcome(ctx, "get", name, rec, err)
}

// Lifetime implements [kv.Store]. Leases last whole seconds. Max holds for
// servers whose election timeout is at most the default of 1 s; each change of
// etcd's leader begins the life of all leases anew.
func (s *Store) Lifetime(ttl time.Duration) (kv.Lifetime, error) {
	seconds, err := wholeSeconds(ttl)
	if err != nil {
		return kv.Lifetime{}, fmt.Errorf("etcdkv: lifetime: %w", err)
	}
	granted := time.Duration(seconds) * time.Second
	return kv.Lifetime{Min: granted, Max: max(granted, shortestLease) + sweep}, nil
}

// longestKey bounds keys, so that a request that carries one several times
// stays well below the 1.5 MiB that a server takes by default.
const longestKey = 64 << 10

// open begins every operation.
func (s *Store) open(ctx context.Context, name string) (safe, error) {
	if ctx.Err() != nil {
		return safe{}, context.Cause(ctx)
	}
	if name == "" {
		return safe{}, fmt.Errorf("a safe needs a name: %w", kv.ErrInvalid)
	}
	key := s.prefix + name
	if len(key) > longestKey {
		return safe{}, fmt.Errorf("a key of %d bytes: want up to %d: %w", len(key), longestKey, kv.ErrInvalid)
	}
	return safe{client: s.client, key: key}, nil
}

// outcome is what every operation returns: the record, or an error that names
// the operation and the safe. Once ctx has ended, an error that leaves the
// outcome open reports ctx's cause, whatever the client made of it.
func outcome(ctx context.Context, op, name string, rec kv.Record, err error) (kv.Record, error) {
	if err == nil {
		return rec, nil
	}
	if cause := context.Cause(ctx); cause != nil && !definite(err) && !errors.Is(err, cause) {
		err = fmt.Errorf("%w (%w)", cause, err)
	}
	return kv.Record{}, fmt.Errorf("etcdkv: %s %.80q: %w", op, name, err)
}

func definite(err error) bool {
	return errors.Is(err, kv.ErrVacant) || errors.Is(err, kv.ErrHeld) ||
		errors.Is(err, kv.ErrStale) || errors.Is(err, kv.ErrInvalid)
}
