package history

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync/atomic"
	"time"

	"github.com/electkv/election/internal/views"
	"github.com/electkv/election/kv"
)

// Observe returns a view of store that notes each request right before it is
// sent and each answer right after it came, and each record that a get or a
// watch shows. note fills in whose they are and when; it returns when the event
// is out of this process's hands, and may be called by several goroutines at
// once.
//
// The view is a [kv.Queue], a [kv.HandOver], a [kv.Vacate] and a [kv.Batch] if store is. It is
// no [kv.Board].
func Observe(store kv.Store, note func(Event)) kv.Store { return ObserveOnly(store, "", note) }

// ObserveOnly is Observe that notes what is about the safes of one election. Others may use
// the view too, so that their records are refreshed together.
func ObserveOnly(store kv.Store, election string, note func(Event)) kv.Store {
	return views.Over(store, &observed{store: store, election: election, note: note})
}

// An observed store has parts that the store may not have, and is then not asked for them.
type observed struct {
	store    kv.Store
	election string // nothing is noted of others, unless this is empty
	note     func(Event)
	calls    atomic.Uint64
}

// The operations of a store, in Event.Op.
const (
	OpCreate   = "create"
	OpSwap     = "swap"
	OpHandOver = "handover"
	OpRefresh  = "refresh"
	OpDelete   = "delete"
	OpGet      = "get"
	OpWatch    = "watch"
	OpJoin     = "join"
	OpStay     = "stay"
)

type call struct {
	o      *observed // nil: nothing is noted of it
	safe   string
	op     string
	number uint64
}

// notes reports whether a name is of the election that is observed.
func (o *observed) notes(name string) bool {
	return o.election == "" || name == o.election || strings.HasPrefix(name, o.election+":")
}

// SafeOf returns which of an election's safes a name is of, as Event.Safe has it.
func SafeOf(name string) string {
	for _, safe := range []string{Heir, Request} {
		if strings.HasSuffix(name, ":"+safe) {
			return safe
		}
	}
	return ""
}

// send notes a request, and gives its number to the store below. Next is the
// signature that it puts in the place of rec's, if any.
func (o *observed) send(ctx context.Context, name, op string, rec kv.Record, next string) (context.Context, call) {
	if !o.notes(name) {
		return ctx, call{}
	}
	c := call{o, SafeOf(name), op, o.calls.Add(1)}
	o.note(Event{Kind: Sent, Safe: c.safe, Op: op, Call: c.number, Signature: rec.Signature, Token: rec.Token, Next: next})
	return context.WithValue(ctx, callKey{}, c.number), c
}

type callKey struct{}

// CallOf returns the number of the request that an observed store was called
// for with ctx, and zero for any other.
func CallOf(ctx context.Context) uint64 {
	number, _ := ctx.Value(callKey{}).(uint64)
	return number
}

func (c call) answer(rec kv.Record, err error) {
	if c.o == nil {
		return
	}
	c.o.note(Event{Kind: Answered, Safe: c.safe, Op: c.op, Call: c.number, Signature: rec.Signature, Token: rec.Token, TTL: rec.TTL, Lease: rec.Lease, Result: ResultOf(err)})
}

// ResultOf returns the result that an error of a store stands for.
func ResultOf(err error) string {
	switch {
	case err == nil:
		return OK
	case errors.Is(err, kv.ErrHeld):
		return Held
	case errors.Is(err, kv.ErrStale):
		return Stale
	case errors.Is(err, kv.ErrVacant):
		return Vacant
	case errors.Is(err, kv.ErrInvalid):
		return Invalid
	case errors.Is(err, errors.ErrUnsupported):
		return Unsupported
	}
	return Unknown
}

// Create implements [kv.Store].
func (o *observed) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	ctx, c := o.send(ctx, name, OpCreate, rec, "")
	got, err := o.store.Create(ctx, name, rec)
	c.answer(got, err)
	return got, err
}

// Swap implements [kv.Store].
func (o *observed) Swap(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
	handed := ""
	if next.Signature != old.Signature {
		handed = next.Signature
	}
	ctx, c := o.send(ctx, name, OpSwap, old, handed)
	got, err := o.store.Swap(ctx, name, old, next)
	c.answer(got, err)
	return got, err
}

// Refresh implements [kv.Store].
func (o *observed) Refresh(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	ctx, c := o.send(ctx, name, OpRefresh, rec, "")
	got, err := o.store.Refresh(ctx, name, rec)
	c.answer(got, err)
	return got, err
}

// Delete implements [kv.Store].
func (o *observed) Delete(ctx context.Context, name string, rec kv.Record) error {
	ctx, c := o.send(ctx, name, OpDelete, rec, "")
	err := o.store.Delete(ctx, name, rec)
	c.answer(kv.Record{}, err)
	return err
}

// Get implements [kv.Store].
func (o *observed) Get(ctx context.Context, name string) (kv.Record, error) {
	ctx, c := o.send(ctx, name, OpGet, kv.Record{}, "")
	got, err := o.store.Get(ctx, name)
	c.answer(got, err)
	o.see(name, got, err)
	return got, err
}

// Watch implements [kv.Store].
func (o *observed) Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	return func(yield func(kv.Record, error) bool) {
		ctx, _ := o.send(ctx, name, OpWatch, kv.Record{}, "")
		for rec, err := range o.store.Watch(ctx, name) {
			o.see(name, rec, err)
			if !yield(rec, err) {
				return
			}
		}
	}
}

func (o *observed) see(name string, rec kv.Record, err error) {
	if err == nil && o.notes(name) {
		o.note(Event{Kind: Seen, Safe: SafeOf(name), Signature: rec.Signature, Token: rec.Token, TTL: rec.TTL, Lease: rec.Lease})
	}
}

// Lifetime implements [kv.Store].
func (o *observed) Lifetime(ttl time.Duration) (kv.Lifetime, error) { return o.store.Lifetime(ttl) }
