//go:build unix

package linear_test

import (
	"context"
	"errors"
	"testing"

	etcdkv "github.com/electkv/election/backends/etcd"
	"github.com/electkv/election/internal/linear"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// A pushy store moves whatever it refreshes with others.
type pushy struct{ *etcdkv.Store }

func (s pushy) RefreshAll(ctx context.Context, records []kv.Held, tell func(int, kv.Record, error)) {
	all := make([]kv.Held, len(records))
	for i, r := range records {
		all[i] = kv.Held{Name: r.Name, Record: r.Record, Share: true}
	}
	s.Store.RefreshAll(ctx, all, tell)
}

// A renumbering store takes the write that moves a record for the one that brought it in.
type renumbering struct{ *etcdkv.Store }

func (s renumbering) RefreshAll(ctx context.Context, records []kv.Held, tell func(int, kv.Record, error)) {
	s.Store.RefreshAll(ctx, records, func(i int, rec kv.Record, err error) {
		if rec.Lease != records[i].Record.Lease {
			rec.Token = rec.Revision
		}
		tell(i, rec, err)
	})
}

// A lenient store takes a record for the same as long as its text is.
type lenient struct{ *etcdkv.Store }

func (s lenient) Swap(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
	rec, err := s.Store.Swap(ctx, name, old, next)
	if !errors.Is(err, kv.ErrStale) {
		return rec, err
	}
	now, got := s.Get(ctx, name)
	if got == nil && now.Owns(old) && now.Value == old.Value && now.Note == old.Note {
		return s.Store.Swap(ctx, name, now, next)
	}
	return rec, err
}

func TestAMoveThatIsMoreThanAMoveIsFound(t *testing.T) {
	t.Parallel() // it often waits
	server := testenv.StartEtcd(t)
	for name, planted := range map[string]struct {
		ops   int
		store func(*etcdkv.Store) kv.Store
	}{
		"what may not share a lease moves":              {0, func(s *etcdkv.Store) kv.Store { return pushy{s} }},
		"what moves gets another token":                 {0, func(s *etcdkv.Store) kv.Store { return renumbering{s} }},
		"a swap is taken at the revision before a move": {5000, func(s *etcdkv.Store) kv.Store { return lenient{s} }},
	} {
		t.Run(name, func(t *testing.T) {
			recorder, wires := linear.NewRecorder(), newWires(t, server.Addr())
			requireFound(t, recorder, subject{name: "etcd-planted", ops: planted.ops, open: func(client int) kv.Store {
				store := etcdkv.New(dialEtcd(t, wires[client]), &etcdkv.Options{Prefix: name + "/"})
				return recorder.Client(client, planted.store(store))
			}})
		})
	}
}
