package consulkv

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/electkv/election/internal/ctxend"
	"github.com/electkv/election/internal/spare"
	"github.com/electkv/election/kv"
)

// Options tune a [Store]. The zero value means the defaults.
type Options struct {
	// Prefix is put before a safe's name to make its key, and nothing between
	// the two: "elections/", say. By default the name is the key.
	Prefix string

	// MinTTL is the shortest TTL that the servers grant, their setting session_ttl_min.
	// Zero means 10 s, which is the servers' default; they refuse less, whatever MinTTL
	// is.
	MinTTL time.Duration

	// LockDelay is how long Consul keeps a safe closed after a session that
	// held it has expired. Zero means 1 ms, the least there is: a session
	// outlives its TTL, so there is nothing left to wait for. Servers cut it
	// to 60 s. With checks it is at least the TTL.
	LockDelay time.Duration

	// NodeChecks and ServiceChecks are health checks, of the node of the agent that the
	// client talks to, which end a record as soon as one of them is critical. By default
	// there are none, not even Consul's own node check. The package documentation says
	// what checks cost. With ServiceChecks alone Consul adds its own node check,
	// serfHealth.
	NodeChecks    []string
	ServiceChecks []api.ServiceCheck

	// Plain publishes values as they are: the safe's key has the bare value, for programs
	// that read it there, and the key with ".election" at the end has the record. All
	// candidates of an election need the same setting: to a candidate with the other one
	// their records are foreign, so it waits.
	Plain bool

	// Backstop is the longest time after which a watch of an unchanged safe
	// reads its key again, in case its connection has died without a sign. Zero
	// means one minute. A watch of a live record looks again after twice the
	// record's TTL if that is sooner, but not before 10 s.
	Backstop time.Duration
}

// Store is a [kv.Store] in Consul that hands over in one step ([kv.HandOver]), refreshes
// many records at once ([kv.Batch]) and keeps rosters ([kv.Roster]). Use [New] to make
// one. Its state is in Consul, except for sessions that it has ready or lets records
// share. So any number of Stores may share a client, and the safes.
type Store struct {
	client   *api.Client
	conns    *connections // of all stores that have the client
	opts     Options
	observed bool // what it reads and writes are the cells of a register
	spares   spare.Leases[use]
	sharing  sharing
	seen     indexes
	members  *Store // keeps the safes of members, if values are plain; else nil
}

var (
	_ kv.HandOver = (*Store)(nil)
	_ kv.Batch    = (*Store)(nil)
	_ kv.Roster   = (*Store)(nil)
)

// New returns a store that uses the client and never closes it. The client's
// address, TLS, token, namespace and datacenter are those of the store. Options
// may be nil.
func New(client *api.Client, opts *Options) *Store {
	s := &Store{client: client, conns: connectionsOf(client)}
	if opts != nil {
		s.opts = *opts
	}
	if s.opts.MinTTL <= 0 {
		s.opts.MinTTL = 10 * time.Second
	}
	if s.opts.Backstop <= 0 {
		s.opts.Backstop = time.Minute
	}
	if s.opts.Plain {
		apart := s.opts
		apart.Plain = false
		s.members = New(client, &apart)
	}
	return s
}

// Create implements [kv.Store]: a read, a new session, then one Txn that locks the key
// with that session if the key is still as it was read, absent or released. If the last
// Delete has made a session beside its own write, Create takes that one, and renews it
// beside the read.
//
// A record that may be Shared gets a session that up to 500 records share, and that has not locked
// the key before: a read, a renewal of that session, the Txn. One is made if there is none.
//
// The text of an ErrHeld says whether an owner holds the safe, or a lock-delay, which
// passes by itself. A lost reply leaves a session behind that nobody renews, with the
// record or without it; it is gone after the record's lifetime.
func (s *Store) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	s = s.of(name)
	key, err := s.open(ctx, name)
	if err == nil {
		rec, err = s.create(ctx, key, rec)
	}
	if err == nil && isMember(name) {
		s.clear(ctx, key)
	}
	return outcome(ctx, "create", name, rec, err)
}

// Swap implements [kv.Store]: a read that tells whether the safe holds old, and
// one Txn on condition that the key's ModifyIndex is still the one read. To
// publish, the Txn locks the key once more with the session that holds it, unless
// value and note are there already: then the read is all. To hand over, it unlocks the
// key for the old session and locks it with the heir's, which was renewed before,
// or with a new one.
//
// The session that backed old is left to expire. With another signature it backs
// nothing in this safe: next.Lease must be another, or the error is
// [kv.ErrInvalid].
func (s *Store) Swap(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
	s = s.of(name)
	key, err := s.open(ctx, name)
	if err == nil {
		next, err = s.swap(ctx, key, old, next)
	}
	return outcome(ctx, "swap", name, next, err)
}

// Refresh implements [kv.Store]: a consistent read that proves that the key holds the
// record, and that a session holds the key, then a renewal of that session. The renewal
// alone proves nothing: a session outlives its keys. If the record shares a session, a
// read now and then looks for keys that were left behind under it.
func (s *Store) Refresh(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	s = s.of(name)
	rec, err := s.refreshOne(ctx, name, rec)
	if err == nil && s.sharing.shared(rec.Lease) {
		s.tend(ctx, aside/3)
	}
	return rec, err
}

// Delete implements [kv.Store]: a read that tells whether the safe holds rec, and one Txn
// that unlocks the key if its ModifyIndex is still the one read; If the value was changed
// in between, it tries again. The session is left to expire, since it may back another
// record; one that expires while it holds no key starts no lock-delay. Beside the two,
// Delete makes a session for the next Create, if none is ready.
func (s *Store) Delete(ctx context.Context, name string, rec kv.Record) error {
	s = s.of(name)
	key, err := s.open(ctx, name)
	if err == nil {
		err = s.delete(ctx, key, rec)
	}
	if err == nil && s.sharing.shared(rec.Lease) {
		s.tend(ctx, aside/3)
	}
	_, err = outcome(ctx, "delete", name, kv.Record{}, err)
	return err
}

// Get implements [kv.Store]: one consistent read.
func (s *Store) Get(ctx context.Context, name string) (kv.Record, error) {
	s = s.of(name)
	key, err := s.open(ctx, name)
	if err != nil {
		return outcome(ctx, "get", name, kv.Record{}, err)
	}
	e, err := s.look(ctx, key)
	if err == nil {
		err = e.vacancy()
	}
	return outcome(ctx, "get", name, e.rec, err)
}

// Watch implements [kv.Store]: blocking queries in consistent mode, one after
// the other.
func (s *Store) Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	return func(yield func(kv.Record, error) bool) {
		s := s.of(name)
		key, err := s.open(ctx, name)
		if err == nil {
			err = s.watch(ctx, key, yield)
		}
		if err != nil {
			yield(outcome(ctx, "watch", name, kv.Record{}, err))
		}
	}
}

// Lifetime implements [kv.Store]. Consul ends a session after twice its TTL, at the
// latest, unless its servers elect a new leader meanwhile, which starts all sessions
// anew. The lock-delay comes after that.
func (s *Store) Lifetime(ttl time.Duration) (kv.Lifetime, error) {
	granted, err := s.grantable(ttl)
	if s.client == nil {
		err = errNoClient
	}
	if err != nil {
		return kv.Lifetime{}, fmt.Errorf("consulkv: lifetime: %w", err)
	}
	return kv.Lifetime{Min: granted, Max: 2*granted + s.lockDelay(granted) + expiryLag}, nil
}

var errNoClient = fmt.Errorf("client is nil: %w", kv.ErrInvalid)

// open begins every operation. It returns the safe's key.
func (s *Store) open(ctx context.Context, name string) (string, error) {
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if s.client == nil {
		return "", errNoClient
	}
	if name == "" {
		return "", fmt.Errorf("a safe needs a name: %w", kv.ErrInvalid)
	}
	key := s.opts.Prefix + name
	return key, checkKey(key)
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
	return kv.Record{}, fmt.Errorf("consulkv: %s %.80q: %w", op, name, err)
}

func definite(err error) bool {
	return errors.Is(err, kv.ErrVacant) || errors.Is(err, kv.ErrHeld) ||
		errors.Is(err, kv.ErrStale) || errors.Is(err, kv.ErrInvalid)
}
