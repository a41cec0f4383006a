//go:build linux

package interop

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/hashicorp/consul/api"
	"github.com/redis/go-redis/v9"

	"github.com/electkv/election/internal/mistake"
	"github.com/electkv/election/kv"
)

// The mistakes that are planted into ours.
const (
	bugTakesOver    = "takes a foreign key over"
	bugDeletes      = "deletes a foreign record"
	bugNoRefresh    = "refreshes nothing"
	bugIgnoresLine  = "ignores the line"
	bugBlindRefresh = "takes every answer to a refresh for a success"
)

// plant returns a view of the store that makes ours do what one with the mistake
// would.
func (p *process) plant(store kv.Store, name string) (kv.Store, error) {
	remove, err := p.remover(name)
	if err != nil {
		return nil, err
	}
	switch p.Bug {
	case bugTakesOver:
		return takesOver{store, remove}, nil
	case bugDeletes:
		return deletes{store, remove}, nil
	case bugNoRefresh:
		return noRefresh{store, p.Who}, nil
	case bugBlindRefresh:
		return blind{mistake.BlindRefresh(store)}, nil
	case bugIgnoresLine:
		if lines, ok := store.(kv.Queue); ok {
			return ignoresLine{mistake.BesideLine(store), lines}, nil
		}
	}
	return nil, fmt.Errorf("unknown bug %q", p.Bug)
}

// remover returns what removes the record at the key, whatever it is.
func (p *process) remover(name string) (func(ctx context.Context) error, error) {
	switch p.Store {
	case inRedis:
		client := redis.NewClient(&redis.Options{Addr: p.Addr})
		return func(ctx context.Context) error { return client.Del(ctx, p.Prefix+name).Err() }, nil
	case inConsul:
		client, err := p.consul()
		return func(ctx context.Context) error {
			_, err := client.KV().Delete(name, (&api.WriteOptions{}).WithContext(ctx))
			return err
		}, err
	}
	client, err := p.etcd()
	return func(ctx context.Context) error {
		s := sampleEtcd(client, p.line())
		l, err := s.look(ctx)
		if err == nil && !l.vacant {
			_, err = client.Delete(ctx, l.key)
		}
		return err
	}, err
}

// takesOver makes room for itself.
type takesOver struct {
	kv.Store
	remove func(ctx context.Context) error
}

// Get implements [kv.Store]: what is not ours is not there.
func (v takesOver) Get(ctx context.Context, name string) (kv.Record, error) {
	rec, err := v.Store.Get(ctx, name)
	if err == nil && rec.Foreign {
		return kv.Record{}, kv.ErrVacant
	}
	return rec, err
}

// Watch implements [kv.Store]: what is not ours is not there.
func (v takesOver) Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	return func(yield func(kv.Record, error) bool) {
		for rec, err := range v.Store.Watch(ctx, name) {
			if err == nil && rec.Foreign {
				rec, err = kv.Record{}, kv.ErrVacant
			}
			if !yield(rec, err) {
				return
			}
		}
	}
}

// Create implements [kv.Store].
func (v takesOver) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	got, err := v.Store.Create(ctx, name, rec)
	if !errors.Is(err, kv.ErrHeld) {
		return got, err
	}
	there, gone := v.Store.Get(ctx, name)
	if gone != nil || !there.Foreign {
		return got, err
	}
	if err := v.remove(ctx); err != nil {
		return kv.Record{}, err
	}
	return v.Store.Create(ctx, name, rec)
}

// deletes is one that clears away what is not ours.
type deletes struct {
	kv.Store
	remove func(ctx context.Context) error
}

// Watch implements [kv.Store].
func (v deletes) Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	return func(yield func(kv.Record, error) bool) {
		for rec, err := range v.Store.Watch(ctx, name) {
			if err == nil && rec.Foreign {
				_ = v.remove(ctx)
			}
			if !yield(rec, err) {
				return
			}
		}
	}
}

// noRefresh takes a lease for granted: it neither refreshes it nor looks at its
// record again, which everything else in the engine would notice.
type noRefresh struct {
	kv.Store
	who string
}

// Watch implements [kv.Store].
func (v noRefresh) Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	return func(yield func(kv.Record, error) bool) {
		for rec, err := range v.Store.Watch(ctx, name) {
			if !yield(rec, err) {
				return
			}
			if strings.HasPrefix(rec.Signature, v.who+"/") {
				<-ctx.Done()
				yield(kv.Record{}, context.Cause(ctx))
				return
			}
		}
	}
}

// Refresh implements [kv.Store].
func (v noRefresh) Refresh(_ context.Context, _ string, rec kv.Record) (kv.Record, error) {
	return rec, nil
}

// ignoresLine takes a place in line for the lead: it looks at its own key only.
type ignoresLine struct {
	kv.Store
	line kv.Queue
}

// Create implements [kv.Store].
func (v ignoresLine) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	return v.line.Join(ctx, name, rec)
}

// Refresh implements [kv.Store].
func (v ignoresLine) Refresh(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	place, _, err := v.line.Stay(ctx, name, rec)
	return place, err
}

// Get implements [kv.Store]: nobody is seen.
func (v ignoresLine) Get(context.Context, string) (kv.Record, error) {
	return kv.Record{}, kv.ErrVacant
}

// Watch implements [kv.Store]: nobody is seen.
func (v ignoresLine) Watch(ctx context.Context, _ string) iter.Seq2[kv.Record, error] {
	return func(yield func(kv.Record, error) bool) {
		if yield(kv.Record{}, kv.ErrVacant) {
			<-ctx.Done()
			yield(kv.Record{}, context.Cause(ctx))
		}
	}
}

// Swap implements [kv.Store].
func (v noRefresh) Swap(_ context.Context, _ string, _, next kv.Record) (kv.Record, error) {
	return next, nil
}

// blind does not notice when it publishes either that its record is gone.
type blind struct{ kv.Store }

// Swap implements [kv.Store].
func (v blind) Swap(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
	got, err := v.Store.Swap(ctx, name, old, next)
	if errors.Is(err, kv.ErrStale) {
		return next, nil
	}
	return got, err
}
