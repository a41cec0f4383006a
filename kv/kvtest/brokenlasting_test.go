package kvtest_test

import (
	"context"
	"sync"
	"time"

	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv"
)

var lastingBreaches = []breach{
	{
		sentence: "lasting records end with the client that wrote them",
		noticed:  "a lasting record fades by its TTL alone",
		each:     true,
		open: func(good *memkv.Store) kv.Store {
			p := &process{}
			p.broken = &broken{Store: good, create: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
				p.wrote(name)
				return good.Create(ctx, name, rec)
			}}
			return p
		},
	},
	{
		sentence: "lasting records fade for those who have watched them",
		noticed:  "a lasting record fades by its TTL alone",
		open: func(good *memkv.Store) kv.Store {
			var mu sync.Mutex
			lasting := map[string]kv.Record{}
			return &broken{Store: good, create: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
				got, err := good.Create(ctx, name, rec)
				mu.Lock()
				defer mu.Unlock()
				if err == nil && rec.Lasting {
					lasting[name] = got
				}
				return got, err
			}, get: func(ctx context.Context, name string) (kv.Record, error) {
				mu.Lock()
				defer mu.Unlock()
				if rec, ok := lasting[name]; ok {
					return rec, nil
				}
				return good.Get(ctx, name)
			}}
		},
	},
	{
		sentence: "a record that cannot be lasting is refused, and is there",
		noticed:  "a lasting record fades by its TTL alone",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, create: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
				got, err := good.Create(ctx, name, rec)
				if rec.Lasting && err == nil {
					return kv.Record{}, kv.ErrInvalid
				}
				return got, err
			}}
		},
	},
	{
		sentence: "lasting records are kept for longer than their TTL",
		noticed:  "a lasting record fades by its TTL alone",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, create: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
				if rec.Lasting {
					rec.TTL += time.Hour
				}
				return good.Create(ctx, name, rec)
			}}
		},
	},
}

// A process is a client whose end takes what it created away.
type process struct {
	*broken
	mu    sync.Mutex
	names []string
}

func (p *process) wrote(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.names = append(p.names, name)
}

func (p *process) quit() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, name := range p.names {
		p.Remove(name)
	}
}
