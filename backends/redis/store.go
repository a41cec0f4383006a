package rediskv

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/electkv/election/internal/board"
	"github.com/electkv/election/kv"
)

// Options change how a [Store] keeps its safes. The zero value is a good choice.
type Options struct {
	// Prefix is put before each name, as it is, to make the record's key.
	// Programs that share an election, or a lock, need the same keys. Default:
	// none.
	Prefix string

	// Plain puts the record's value at its key as it is, for programs that read it there,
	// and the record itself beside it: see the package documentation. All candidates need
	// the same setting; a candidate with the other one takes the record for a foreign
	// one, and waits. Publish values that no program takes for its own lock. Default: the
	// key has the record's text.
	Plain bool

	// Backstop is the longest time between two reads, by a watch, of a safe that does not
	// seem to change. It bounds how late a watch, a leader's too, sees what the server
	// does not tell: FLUSHALL, say, or another program's DEL while keyspace events are
	// off. With more than a hundred safes it is 10 ms for each safe, and 200 ms for each
	// if the safe that it reads is vacant. Default: 1 s.
	Backstop time.Duration

	// Quarantine is how long the safes stay closed after the server was restarted or
	// promoted, counted from when a watch or a create first finds out. Then a server that
	// forgot a record elects nobody while the owner may still trust it. Set the longest
	// TTL in use; with replicas, also set min-replicas-to-write and min-replicas-max-lag,
	// and add the latter to that TTL. The first election on a server waits that long too.
	// All candidates need the same setting. Default: none.
	Quarantine time.Duration
}

const defaultBackstop = time.Second

// Store is a [kv.Store] in Redis that hands over and vacates in one step ([kv.HandOver],
// [kv.Vacate]), refreshes many records at once ([kv.Batch]), lets many callers watch a safe
// at the price of one ([kv.Board]) and keeps rosters ([kv.Roster]). Use [New] to make one.
type Store struct {
	client     redis.UniversalClient
	prefix     string
	backstop   time.Duration
	plain      bool
	observed   bool  // observers judge expiry: see register
	quarantine int64 // in ms
	hub        *hub
	board      *board.Board
	unfit      error  // why the store cannot be used at all, or nil
	members    *Store // the same with values that are not plain, for the safes of members; nil if it has none that are
}

var (
	_ kv.Batch    = (*Store)(nil)
	_ kv.Board    = (*Store)(nil)
	_ kv.HandOver = (*Store)(nil)
	_ kv.Roster   = (*Store)(nil)
	_ kv.Vacate   = (*Store)(nil)
)

// New returns a store that uses the client. The caller keeps the client: its settings and
// hooks, and closing it. The opts may be nil.
//
// Set ContextTimeoutEnabled in the client's options, so that a request whose
// deadline has passed leaves its connection at that moment too; the calls return
// in any case. The client's retries are not used: see the package documentation.
func New(client redis.UniversalClient, opts *Options) *Store {
	s := &Store{client: client, backstop: defaultBackstop, hub: newHub(client)}
	s.board = s.shown(s.look)
	if opts != nil {
		s.prefix = opts.Prefix
		s.plain = opts.Plain
		if opts.Backstop > 0 {
			s.backstop = opts.Backstop
		}
		s.quarantine = (opts.Quarantine + time.Millisecond - 1).Milliseconds()
		if opts.Quarantine < 0 {
			s.unfit = fmt.Errorf("rediskv: a quarantine of %v is negative: %w", opts.Quarantine, kv.ErrInvalid)
		}
	}
	if client == nil {
		s.unfit = fmt.Errorf("rediskv: client is nil: %w", kv.ErrInvalid)
	}
	if _, ok := client.(*redis.Ring); ok {
		s.unfit = fmt.Errorf("rediskv: a redis.Ring moves keys to another server when one does not answer; want a single server, Sentinel or Cluster: %w", kv.ErrInvalid)
	}
	if s.plain {
		apart := *s
		apart.plain = false
		apart.board = apart.shown(apart.look)
		s.members = &apart
	}
	return s
}

// Create implements [kv.Store] with one script: SET NX PXAT, and a number from
// the counter.
func (s *Store) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	s = s.of(name)
	at, err := s.place(name)
	if err != nil {
		return kv.Record{}, err
	}
	if err := checkNew(name, rec); err != nil {
		return kv.Record{}, err
	}
	ttl, err := granted(rec.TTL)
	if err != nil {
		return kv.Record{}, err
	}
	text, value := s.form(rec, ttl)
	args := []any{text, value, ttl.Milliseconds(), at.channel, s.quarantine}
	var reply any
	if at.set != "" {
		reply, err = s.enrol(ctx, at, args...)
	} else {
		reply, err = s.run(ctx, createScript, s.known(at, at.keys(at.counter)), args...)
	}
	if redis.HasErrorPrefix(err, "BADTEXT") {
		err = fmt.Errorf("%w: another program's key is at %q, where the record belongs that goes with a plain value: remove it, if no program needs it, or use another name", kv.ErrHeld, at.text)
	}
	return s.written("create", name, reply, err, kv.ErrHeld)
}

// Swap implements [kv.Store] with one script: GET, compare, SET with KEEPTTL
// or PXAT.
func (s *Store) Swap(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
	s = s.of(name)
	at, err := s.place(name)
	if err != nil {
		return kv.Record{}, err
	}
	if err := checkOwn(name, old); err != nil {
		return kv.Record{}, err
	}
	if err := checkNew(name, next); err != nil {
		return kv.Record{}, err
	}
	publish := next.Signature == old.Signature
	if publish {
		next.TTL = old.TTL
	}
	ttl, err := granted(next.TTL)
	if err != nil {
		return kv.Record{}, err
	}
	anew := ""
	if !publish {
		anew = strconv.FormatInt(ttl.Milliseconds(), 10)
	}
	text, value := s.form(next, ttl)
	reply, err := s.run(ctx, swapScript, at.keys(at.counter),
		old.Signature, old.Token, old.Revision, text, value, anew, at.channel)
	return s.written("swap", name, reply, err, kv.ErrStale)
}

// Refresh implements [kv.Store] with one script: GET, compare, PEXPIREAT.
func (s *Store) Refresh(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	s = s.of(name)
	at, err := s.place(name)
	if err != nil {
		return kv.Record{}, err
	}
	if err := checkOwn(name, rec); err != nil {
		return kv.Record{}, err
	}
	reply, err := s.run(ctx, refreshScript, at.keys(), rec.Signature, rec.Token)
	rec, err = s.written("refresh", name, reply, err, kv.ErrStale)
	if err == nil {
		s.confirmed(name, rec)
	}
	return rec, err
}

// Delete implements [kv.Store] with one script: GET, compare, DEL.
func (s *Store) Delete(ctx context.Context, name string, rec kv.Record) error {
	s = s.of(name)
	at, err := s.place(name)
	if err != nil {
		return err
	}
	if err := checkOwn(name, rec); err != nil {
		return err
	}
	if at.set != "" {
		_, err = s.run(ctx, strikeScript, at.keys(at.set), rec.Signature, rec.Token, at.channel, at.member)
	} else {
		_, err = s.run(ctx, deleteScript, at.keys(), rec.Signature, rec.Token, at.channel)
	}
	return outcome("delete", name, err, kv.ErrStale)
}

// Get implements [kv.Store] with one script on the primary: GETEX, PTTL.
func (s *Store) Get(ctx context.Context, name string) (kv.Record, error) {
	s = s.of(name)
	at, err := s.place(name)
	if err != nil {
		return kv.Record{}, err
	}
	rec, _, err := s.look(ctx, at)
	return rec, outcome("get", name, err, kv.ErrVacant)
}

// Lifetime implements [kv.Store]: records live for the TTL in whole
// milliseconds, rounded up, and the server takes them for expired in the
// millisecond after that.
func (s *Store) Lifetime(ttl time.Duration) (kv.Lifetime, error) {
	if s.unfit != nil {
		return kv.Lifetime{}, s.unfit
	}
	ttl, err := granted(ttl)
	if err != nil {
		return kv.Lifetime{}, err
	}
	return kv.Lifetime{Min: ttl, Max: ttl + time.Millisecond}, nil
}

// look returns what the safe holds and the time that it has left. If it holds
// nothing, the error is redis.Nil.
func (s *Store) look(ctx context.Context, at place) (kv.Record, time.Duration, error) {
	reply, err := s.run(ctx, lookScript, s.known(at, at.keys()), s.quarantine)
	if err != nil {
		return kv.Record{}, 0, err
	}
	fields, _ := reply.([]any)
	if len(fields) != 3 {
		return kv.Record{}, 0, fmt.Errorf("the server's reply is %T, want three fields", reply)
	}
	return s.seen(fields)
}

// seen returns what a script says that a safe holds, by three fields of its reply.
func (s *Store) seen(fields []any) (kv.Record, time.Duration, error) {
	kind, isKind := fields[0].(string)
	text, isText := fields[1].(string)
	ms, isTime := fields[2].(int64)
	if !isKind || !isText || !isTime {
		return kv.Record{}, 0, errors.New("the server's reply has other fields than type, text and time left")
	}
	left := forever
	if ms >= 0 {
		left = time.Duration(min(ms, int64(longest/time.Millisecond))) * time.Millisecond
	}
	return s.state(kind, text, left), left, nil
}

// written returns the record that a script says it has left in the safe.
func (s *Store) written(op, name string, reply any, err, refusal error) (kv.Record, error) {
	if err := outcome(op, name, err, refusal); err != nil {
		return kv.Record{}, err
	}
	text, ok := reply.(string)
	if !ok {
		return kv.Record{}, fmt.Errorf("rediskv: %s %q: the server's reply is %T, want a text", op, name, reply)
	}
	return s.state(isRecord, text, 0), nil
}

// outcome says what an operation has come to. A script's nil is its refusal, and
// nothing else is: errors of the server, of the network and of the context say
// nothing definite.
func outcome(op, name string, err, refusal error) error {
	if errors.Is(err, redis.Nil) {
		err = refusal
	}
	if err != nil {
		return fmt.Errorf("rediskv: %s %q: %w", op, name, err)
	}
	return nil
}
