package paxoskv

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/electkv/election/backends/paxos/internal/lease"
	"github.com/electkv/election/kv"
)

// Store is a [kv.Store] that the members keep among themselves. Use [New] to make one,
// and Close to end it.
type Store struct {
	terms     lease.Terms
	proposer  lease.Proposer
	transport lease.Transport
	clock     *clock
	backstop  time.Duration
	log       *slog.Logger
	opens     time.Duration // when the acceptor does, by the slow clock

	granting sync.Mutex
	acceptor *lease.Acceptor // nil of a client
	promises *promises       // nil without a Dir
	forgets  time.Duration

	calls  calls
	turns  turns
	scenes scenes

	closing sync.Once
	closed  chan struct{}
}

var (
	_ kv.Store = (*Store)(nil)

	errClosed = errors.New("the store was closed")
)

// New starts this process's part in the cluster: it listens, connects with the other
// members, and grants them leases once it has been in quarantine. New does not wait for
// any of that. Operations do, until their contexts end.
//
// The store has goroutines and connections of its own until Close.
func New(opts *Options) (*Store, error) {
	o := Options{}
	if opts != nil {
		o = *opts
	}
	o = o.defaults()
	terms, err := o.terms()
	if err != nil {
		return nil, err
	}
	incarnation := rand.Uint64()
	over, err := newTransport(o, terms, incarnation)
	if err != nil {
		return nil, err
	}
	return start(o, terms, lease.Proposer{Terms: terms, Self: lease.MemberID(over.ID()), Incarnation: incarnation}, over)
}

// start begins to listen. The options are complete.
func start(opts Options, terms lease.Terms, proposer lease.Proposer, transport lease.Transport) (*Store, error) {
	s := &Store{
		terms: terms, proposer: proposer, transport: transport,
		clock: newClock(opts.Clock), backstop: opts.Backstop, log: opts.Logger,
		calls:  calls{boxes: map[uint64]chan<- arrival{}, limit: lease.NewLimit(0)},
		turns:  turns{taken: map[string]*turn{}},
		scenes: scenes{on: map[string]*scene{}},
		closed: make(chan struct{}),
	}
	if opts.ID != "" {
		if err := s.enter(opts); err != nil {
			return nil, fmt.Errorf("paxoskv: %w", err)
		}
	}
	if err := transport.Listen(s.deliver); err != nil {
		return nil, errors.Join(err, transport.Close())
	}
	return s, nil
}

// enter makes the acceptor. One that may have been here before begins with a
// quarantine.
func (s *Store) enter(opts Options) error {
	_, slow := s.clock.now()
	s.opens, s.forgets = slow+s.terms.Quarantine(), slow+s.terms.Quarantine()
	floor := uint64(0)
	if opts.Dir != "" {
		p, used, err := openPromises(opts.Dir)
		if err != nil {
			return err
		}
		if opts.Founding && !used {
			s.opens = slow
		}
		if err := p.keep(p.kept + 1); err != nil { // the next start knows of this one
			return err
		}
		if p.kept > lease.Seeds {
			s.log.Warn("this member has promised counters that clocks do not lead to: a holder of a certificate has sent them", "promised", p.kept)
		}
		s.promises, floor = p, p.kept
	}
	s.acceptor = lease.NewAcceptor(s.terms, s.proposer.Incarnation, s.opens, floor)
	return nil
}

// Close ends this process's part in the cluster and waits for everything that it
// started. Operations and watches under way return an error. Records stay with the
// other members until they expire: resign first.
func (s *Store) Close() error {
	s.closing.Do(func() { close(s.closed) })
	return s.transport.Close()
}

// Quarantined returns for how much longer this member grants nothing because it has just
// started.
func (s *Store) Quarantined() time.Duration {
	_, slow := s.clock.now()
	return max(0, s.opens-slow)
}

// Create implements [kv.Store].
func (s *Store) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	change := lease.Change{Kind: lease.Create, Signature: rec.Signature, Value: rec.Value, Note: rec.Note, TTL: rec.TTL}
	if err := s.check(name, change); err != nil {
		return kv.Record{}, err
	}
	return s.write(ctx, name, change)
}

// Swap implements [kv.Store].
func (s *Store) Swap(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
	if err := checkOwn(name, old); err != nil {
		return kv.Record{}, err
	}
	if next.Foreign {
		return kv.Record{}, fmt.Errorf("paxoskv: %q: nothing is handed over to a foreign record: %w", name, kv.ErrInvalid)
	}
	change := lease.Change{
		Kind: lease.HandOver, OldSignature: old.Signature, OldToken: old.Token, OldRevision: old.Revision,
		Signature: next.Signature, Value: next.Value, Note: next.Note, TTL: next.TTL,
	}
	if next.Signature == old.Signature {
		change.Kind, change.TTL = lease.Publish, s.terms.MaxTTL // for check; it is not looked at
	}
	if err := s.check(name, change); err != nil {
		return kv.Record{}, err
	}
	return s.write(ctx, name, change)
}

// Refresh implements [kv.Store].
func (s *Store) Refresh(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	if err := checkOwn(name, rec); err != nil {
		return kv.Record{}, err
	}
	return s.write(ctx, name, lease.Change{Kind: lease.Refresh, OldSignature: rec.Signature, OldToken: rec.Token})
}

// Delete implements [kv.Store].
func (s *Store) Delete(ctx context.Context, name string, rec kv.Record) error {
	if err := checkOwn(name, rec); err != nil {
		return err
	}
	_, err := s.write(ctx, name, lease.Change{Kind: lease.Delete, OldSignature: rec.Signature, OldToken: rec.Token})
	return err
}

// Get implements [kv.Store].
func (s *Store) Get(ctx context.Context, name string) (kv.Record, error) {
	if err := checkName(name); err != nil {
		return kv.Record{}, err
	}
	sight, err := s.look(ctx, name)
	if err != nil {
		return kv.Record{}, err
	}
	rec, err := reported(sight)
	if err != nil {
		return rec, fmt.Errorf("paxoskv: %q: %w", short(name), err)
	}
	return rec, nil
}

// look returns what a majority says that a safe holds.
func (s *Store) look(ctx context.Context, name string) (lease.Sight, error) {
	if ctx.Err() != nil {
		return lease.Sight{}, s.tooLate(ctx, name, "not asked, for want of time")
	}
	res, err := s.carryOut(ctx, name, lease.Change{Kind: lease.Read})
	if err != nil {
		return lease.Sight{}, fmt.Errorf("paxoskv: %q: %w", short(name), err)
	}
	return res.Sight, nil
}

// write carries out a change. A member's changes of one safe follow one another.
func (s *Store) write(ctx context.Context, name string, change lease.Change) (kv.Record, error) {
	if ctx.Err() != nil {
		return kv.Record{}, s.tooLate(ctx, name, "not tried, for want of time")
	}
	done, err := s.turns.take(ctx, name)
	if err != nil {
		return kv.Record{}, s.tooLate(ctx, name, "not tried: an earlier write of this process has not ended")
	}
	defer done()
	res, err := s.carryOut(ctx, name, change)
	if err == nil {
		err = outcome(res.Verdict)
	}
	if err != nil {
		return kv.Record{}, fmt.Errorf("paxoskv: %q: %w", short(name), err)
	}
	return record(res.State), nil
}

func outcome(v lease.Verdict) error {
	switch v {
	case lease.Written:
		return nil
	case lease.Held:
		return kv.ErrHeld
	case lease.Stale:
		return kv.ErrStale
	}
	return errUnclear
}

// Lifetime implements [kv.Store].
func (s *Store) Lifetime(ttl time.Duration) (kv.Lifetime, error) {
	if err := s.checkTTL(ttl); err != nil {
		return kv.Lifetime{}, fmt.Errorf("paxoskv: %w", err)
	}
	return kv.Lifetime{Min: ttl, Max: s.terms.Life(ttl) + (2*lease.MaxRescues+1)*s.terms.Round}, nil
}
