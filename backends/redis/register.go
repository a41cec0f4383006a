package rediskv

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/electkv/election/internal/observer"
	"github.com/electkv/election/kv"
)

// A register keeps records that nothing ends but a write: each at a key without an
// expiry, at which a script compares before it writes.
type register struct {
	s         *Store
	strangers *strangers
}

var _ observer.Register = (*register)(nil)

func newRegister(client redis.UniversalClient, opts *Options) *register {
	s := New(client, opts)
	s.observed = true
	r := &register{s: s, strangers: newStrangers(time.Duration(s.quarantine) * time.Millisecond)}
	s.board = s.shown(r.look)
	return r
}

// Check implements [observer.Register].
func (r *register) Check(ttl time.Duration) error {
	if r.s.unfit != nil {
		return r.s.unfit
	}
	if ttl < leastObserved {
		return fmt.Errorf("rediskv: TTL %v: want at least %v where observers judge: they have to see a refresh in time: %w", ttl, leastObserved, kv.ErrInvalid)
	}
	_, err := granted(ttl)
	return err
}

// leastObserved is the shortest TTL that observers judge.
const leastObserved = 500 * time.Millisecond

// Get implements [observer.Register] with one script: GETEX, PTTL.
func (r *register) Get(ctx context.Context, name string) (kv.Record, error) {
	at, err := r.s.place(name)
	if err != nil {
		return kv.Record{}, err
	}
	rec, _, err := r.look(ctx, at)
	return rec, outcome("get", name, err, kv.ErrVacant)
}

// Put implements [observer.Register] with one script: GET, compare, SET.
func (r *register) Put(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
	at, err := r.s.place(name)
	if err != nil {
		return kv.Record{}, err
	}
	if old != (kv.Record{}) {
		if err := checkOwn(name, old); err != nil {
			return kv.Record{}, err
		}
	}
	if err := checkNew(name, next); err != nil {
		return kv.Record{}, err
	}
	if next.TTL, err = granted(next.TTL); err != nil {
		return kv.Record{}, err
	}
	if next.Signature == old.Signature {
		return r.renew(ctx, name, at, old, next)
	}
	return r.claim(ctx, name, at, old, next)
}

// renew writes under the signature that is there.
func (r *register) renew(ctx context.Context, name string, at place, old, next kv.Record) (kv.Record, error) {
	text, _ := r.s.form(next, next.TTL)
	reply, err := r.s.run(ctx, renewScript, at.keys(), old.Signature, old.Token, old.Revision, text, newRevision(), at.channel)
	return r.s.written("renew", name, reply, err, kv.ErrStale)
}

// claim writes under another signature, or where nothing is there. A server that
// may have forgotten a record, or that it was refreshed, lets nobody do that until
// its quarantine is over: kv.ErrHeld.
func (r *register) claim(ctx context.Context, name string, at place, old, next kv.Record) (kv.Record, error) {
	text, _ := r.s.form(next, next.TTL)
	reply, err := r.s.run(ctx, claimScript, r.s.known(at, at.keys(at.counter)),
		old.Signature, old.Token, old.Revision, next.Signature, text, newRevision(), at.channel, r.strangers.waited(at.record))
	if id, ok := reply.([]any); err == nil && ok && len(id) == 1 {
		r.strangers.meet(at.record, fmt.Sprint(id[0]))
		err = fmt.Errorf("the server may have been restarted or promoted within the last %v, its quarantine: %w", r.strangers.patience, kv.ErrHeld)
	} else if err == nil {
		r.strangers.meet(at.record, "")
	}
	return r.s.written("claim", name, reply, err, kv.ErrStale)
}

// Remove implements [observer.Register] with one script: GET, compare, DEL.
func (r *register) Remove(ctx context.Context, name string, old kv.Record) error {
	at, err := r.s.place(name)
	if err != nil {
		return err
	}
	if err := checkOwn(name, old); err != nil {
		return err
	}
	_, err = r.s.run(ctx, removeScript, at.keys(), old.Signature, old.Token, old.Revision, at.channel)
	return outcome("remove", name, err, kv.ErrStale)
}

// Watch implements [observer.Register], as a [Store] watches: each refresh is a
// write, and hints at itself.
func (r *register) Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	return r.s.board.Watch(ctx, name)
}

// look is a lookout, and gets to know the server.
func (r *register) look(ctx context.Context, at place) (kv.Record, time.Duration, error) {
	reply, err := r.s.run(ctx, viewScript, r.s.known(at, at.keys()), r.strangers.waited(at.record))
	if err != nil {
		return kv.Record{}, 0, err
	}
	fields, _ := reply.([]any)
	if len(fields) != 4 {
		return kv.Record{}, 0, fmt.Errorf("the server's reply is %T, want four fields", reply)
	}
	id, ok := fields[3].(string)
	if !ok {
		return kv.Record{}, 0, errors.New("the server's reply has no identity")
	}
	r.strangers.meet(at.record, id)
	if fields[0] == "" {
		return kv.Record{}, 0, redis.Nil
	}
	return r.s.seen(fields[:3])
}

// newRevision returns a number that no other write has: one of 9·10^18, so that
// two in a row are the same about as often as never. It owes nothing to the
// server, which may forget its counter, and set its clock back. All have as many
// digits, so that a refresh takes no more room than the one before.
func newRevision() uint64 { return 1e18 + rand.Uint64N(9e18) }
