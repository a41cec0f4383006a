package history

import (
	"context"
	"errors"
	"iter"
	"sync/atomic"
	"time"

	"github.com/electkv/election/kv"
)

// Observe returns a view of store that notes each request right before it is
// sent and each answer right after it came, and each record that a get or a
// watch shows. note fills in whose they are and when; it returns when the event
// is out of this process's hands, and may be called by several goroutines at
// once.
func Observe(store kv.Store, note func(Event)) kv.Store {
	return &observed{store: store, note: note}
}

type observed struct {
	store kv.Store
	note  func(Event)
	calls atomic.Uint64
}

// The operations of a store, in Event.Op.
const (
	opCreate  = "create"
	opSwap    = "swap"
	opRefresh = "refresh"
	opDelete  = "delete"
	opGet     = "get"
	opWatch   = "watch"
)

type call struct {
	o      *observed
	op     string
	number uint64
}

// send notes a request, and gives its number to the store below.
func (o *observed) send(ctx context.Context, op string, rec kv.Record) (context.Context, call) {
	c := call{o, op, o.calls.Add(1)}
	o.note(Event{Kind: Sent, Op: op, Call: c.number, Signature: rec.Signature, Token: rec.Token})
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
	c.o.note(Event{Kind: Answered, Op: c.op, Call: c.number, Signature: rec.Signature, Token: rec.Token, TTL: rec.TTL, Result: ResultOf(err)})
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
	}
	return Unknown
}

// Create implements [kv.Store].
func (o *observed) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	ctx, c := o.send(ctx, opCreate, rec)
	got, err := o.store.Create(ctx, name, rec)
	c.answer(got, err)
	return got, err
}

// Swap implements [kv.Store].
func (o *observed) Swap(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
	ctx, c := o.send(ctx, opSwap, old)
	got, err := o.store.Swap(ctx, name, old, next)
	c.answer(got, err)
	return got, err
}

// Refresh implements [kv.Store].
func (o *observed) Refresh(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	ctx, c := o.send(ctx, opRefresh, rec)
	got, err := o.store.Refresh(ctx, name, rec)
	c.answer(got, err)
	return got, err
}

// Delete implements [kv.Store].
func (o *observed) Delete(ctx context.Context, name string, rec kv.Record) error {
	ctx, c := o.send(ctx, opDelete, rec)
	err := o.store.Delete(ctx, name, rec)
	c.answer(kv.Record{}, err)
	return err
}

// Get implements [kv.Store].
func (o *observed) Get(ctx context.Context, name string) (kv.Record, error) {
	ctx, c := o.send(ctx, opGet, kv.Record{})
	got, err := o.store.Get(ctx, name)
	c.answer(got, err)
	o.see(got, err)
	return got, err
}

// Watch implements [kv.Store].
func (o *observed) Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	return func(yield func(kv.Record, error) bool) {
		ctx, _ := o.send(ctx, opWatch, kv.Record{})
		for rec, err := range o.store.Watch(ctx, name) {
			o.see(rec, err)
			if !yield(rec, err) {
				return
			}
		}
	}
}

func (o *observed) see(rec kv.Record, err error) {
	if err == nil {
		o.note(Event{Kind: Seen, Signature: rec.Signature, Token: rec.Token, TTL: rec.TTL})
	}
}

// Lifetime implements [kv.Store].
func (o *observed) Lifetime(ttl time.Duration) (kv.Lifetime, error) { return o.store.Lifetime(ttl) }
