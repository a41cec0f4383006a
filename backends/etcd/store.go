package etcdkv

import (
	"context"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/electkv/election/internal/board"
	"github.com/electkv/election/internal/ctxend"
	"github.com/electkv/election/internal/spare"
	"github.com/electkv/election/kv"
)

// Options tune a [Store]. The zero value means the defaults.
type Options struct {
	// Prefix is put before a safe's name to make its key, with nothing between
	// the two: "elections/", say. By default the name is the key.
	Prefix string

	// Suffix is put after a safe's name, likewise. It is for sharing the lines of
	// clients whose own prefix ended with a slash: what NewMutex of package
	// concurrency calls "/jobs/" is the safe "jobs" with Prefix "/" and Suffix "/".
	Suffix string

	// Layout says at which keys a safe lies: OneKey by default, or where the locks
	// and elections of etcd's own client have theirs (Claim). A [Queue] has its own:
	// leave it out there.
	Layout Layout

	// Plain puts what a leader publishes at its key as it is, for programs that read it
	// there. By default the value is part of a text that has the whole record. With Plain
	// the record lies beside it, at a companion key; see Records. All candidates of an
	// election use the same setting: to candidates with the other one, the leader is
	// another program's lock.
	Plain bool

	// Backstop is about how often a watch of an unchanged safe reads its key,
	// in case its connection has died without a sign. Vacant safes are read less
	// often where a Store watches more than 300, and a safe whose record RefreshAll
	// has just proved is not read. Zero or less means one minute.
	Backstop time.Duration
}

// A Store is a [kv.Store] in etcd that hands over and vacates in one step
// ([kv.HandOver], [kv.Vacate]), refreshes many records with few requests ([kv.Batch]),
// lets many callers watch a safe at the price of one ([kv.Board]) and keeps rosters
// ([kv.Roster]). Use [New] to make one. Its state is in etcd, except for a lease that
// it has ready, and which records share a lease (see [Store.RefreshAll]). Any number of
// Stores may share the client and the safes, but calls for a record that has shared a
// lease must go to the Store that it came from.
type Store struct {
	client   *clientv3.Client
	opts     Options
	lines    bool // it is a Queue's
	observed bool // what it reads and writes are the cells of a register
	board    *board.Board
	watches  hub
	spares   spare.Leases[use]
	sharing  sharing
}

var (
	_ kv.Batch    = (*Store)(nil)
	_ kv.Board    = (*Store)(nil)
	_ kv.HandOver = (*Store)(nil)
	_ kv.Roster   = (*Store)(nil)
	_ kv.Vacate   = (*Store)(nil)
)

// New returns a store that uses the client, and never closes it. Options may be
// nil.
func New(client *clientv3.Client, opts *Options) *Store {
	s := &Store{}
	s.init(client, opts)
	return s
}

func (s *Store) init(client *clientv3.Client, opts *Options) {
	s.client, s.board = client, board.New(rest, s.shown)
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.Backstop <= 0 {
		s.opts.Backstop = time.Minute
	}
}

// Create implements [kv.Store]: a LeaseGrant, then one Txn that puts the record with that
// lease if the safe has no key, be it the first or not. A read before those spares both
// if it finds that the safe is held. If the last Delete of the safe has had a lease
// granted, Create keeps that alive beside the read, and needs no other.
//
// In the layout OneKey and without Options.Plain, a record that may be Shared gets a lease
// that up to 500 records share; one is granted if there is none. It is kept alive beside the
// read, unless that was done within the last 900 ms and the last eighth of the TTL: then the record's
// TTL is what is left. The first create after a Delete of the safe by this Store does not read first.
//
// A lost reply leaves a lease behind, with the record or without it. It fades by itself:
// nobody keeps it alive, or, if it is shared, its other records leave it with their next
// refresh.
func (s *Store) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	now := time.Now()
	sf, err := s.open(ctx, name)
	if err == nil {
		rec, err = sf.create(ctx, rec)
	}
	s.sharing.silents(now, false)
	return outcome(ctx, "create", name, rec, err)
}

// Swap implements [kv.Store]: a read that tells whether the safe holds old, then one Txn
// that puts the new record if the key's ModRevision is still the one read. Between the
// two, a takeover has a lease granted, and a hand-over keeps the heir's alive and finds a
// key that has it. Its Txn requires that this is still so; if only that has changed, it
// is made anew with another key of that lease. If etcd denies the heir's lease, a read
// follows, and etcd is asked again: the error is [kv.ErrStale], or leaves the outcome
// open if the lease turns out to have a key. The heir's lease is another than old's, or
// the error is [kv.ErrInvalid].
//
// In a line, where a key's name tells the lease, the Txn of a takeover or
// hand-over deletes the old key and puts the new one, and requires that no other
// key is in line. It returns [kv.ErrStale], and says so, if there is one.
func (s *Store) Swap(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
	sf, err := s.open(ctx, name)
	if err == nil {
		next, err = sf.swap(ctx, old, next)
	}
	return outcome(ctx, "swap", name, next, err)
}

// Refresh implements [kv.Store]: a LeaseKeepAlive, then a linearizable read that
// proves that the key still holds the record, with the same lease, and is the
// first in line. The keep-alive alone proves nothing, since a lease outlives its
// key, and neither does its refusal: if the key still holds the record with the lease
// that etcd denies, the error leaves the outcome open, and a later call tells. A record that
// shares a lease, or may, can take more: see [Store.RefreshAll].
func (s *Store) Refresh(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	now := time.Now()
	sf, err := s.open(ctx, name)
	if err == nil {
		rec, err = sf.refresh(ctx, rec)
	}
	if err == nil {
		rec = s.left(ctx, name, rec)
	}
	s.sharing.silents(now, false)
	return outcome(ctx, "refresh", name, rec, err)
}

// RefreshAll implements [kv.Batch] in the layout OneKey: for 127 records at a time, with
// Options.Plain 63, the LeaseKeepAlives of their leases on one stream, then one Txn. It
// proves that their keys have the ModRevisions of the records, as they came from the
// store: no other write has them, so each key holds its record with its lease. If the Txn
// is refused, a second one reads the ModRevisions. What is left is refreshed singly, as
// by Refresh: records that have changed or are gone, or whose leases are denied.
//
// If a stream or a Txn fails, the outcome is open for those of its records that have no
// answer. If the client's own Lease was replaced, each lease is kept alive by a call of
// the replacement. In the other layouts each record is refreshed singly.
//
// Records that may share a lease and do not yet come to do so, up to 500 of them, but not with
// Options.Plain: the Txn moves them, once both leases are known to live. If nobody asks for the refresh of
// one for three quarters of a TTL, a read tells whether it was left behind. Then the others leave the lease,
// and it fades.
func (s *Store) RefreshAll(ctx context.Context, records []kv.Held, tell func(i int, rec kv.Record, err error)) {
	s.refreshAll(ctx, records, false, tell)
}

// Delete implements [kv.Store]: one Txn that deletes the key if its ModRevision and its
// text are rec's. If they are not, a read tells whether the safe holds rec, perhaps with a
// new value, and the Txn is made for that. The lease fades by itself: another key may have
// it, and nobody keeps it alive for this one. Beside the Txn a lease is granted for the
// next Create of the safe, unless the record shares one.
func (s *Store) Delete(ctx context.Context, name string, rec kv.Record) error {
	sf, err := s.open(ctx, name)
	if err == nil {
		_, err = sf.delete(ctx, rec)
	}
	_, err = outcome(ctx, "delete", name, kv.Record{}, err)
	return err
}

// Get implements [kv.Store]: one linearizable read, of the key that was created
// first. With Options.Plain, a second one of its companion, as it was then.
func (s *Store) Get(ctx context.Context, name string) (kv.Record, error) {
	var rec kv.Record
	sf, err := s.open(ctx, name)
	if err == nil {
		rec, err = sf.look(ctx)
	}
	return outcome(ctx, "get", name, rec, err)
}

// Lifetime implements [kv.Store]. Leases last whole seconds. Max holds for
// servers whose election timeout is at most the default of 1 s; each change of
// etcd's leader begins the life of all leases anew.
func (s *Store) Lifetime(ttl time.Duration) (kv.Lifetime, error) {
	seconds, err := wholeSeconds(ttl)
	if unfit := s.unfit(); unfit != nil {
		err = unfit
	}
	if err != nil {
		return kv.Lifetime{}, fmt.Errorf("etcdkv: lifetime: %w", err)
	}
	granted := time.Duration(seconds) * time.Second
	return kv.Lifetime{Min: granted, Max: max(granted, shortestLease) + sweep, Queue: s.lines}, nil
}

// outcome is what every operation returns: the record, or an error that names
// the operation and the safe. Once ctx has ended, an error that leaves the
// outcome open reports ctx's cause, whatever the client made of it.
func outcome(ctx context.Context, op, name string, rec kv.Record, err error) (kv.Record, error) {
	if err == nil {
		return rec, nil
	}
	if !definite(err) {
		err = ctxend.Wrap(ctx, err)
	}
	return kv.Record{}, fmt.Errorf("etcdkv: %s %.80q: %w", op, name, err)
}

func definite(err error) bool {
	return errors.Is(err, kv.ErrVacant) || errors.Is(err, kv.ErrHeld) ||
		errors.Is(err, kv.ErrStale) || errors.Is(err, kv.ErrInvalid)
}
