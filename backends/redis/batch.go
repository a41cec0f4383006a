package rediskv

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/electkv/election/internal/gate"
	"github.com/electkv/election/kv"
)

const (
	// crowd is how many records one script refreshes. It has the server busy for a
	// fraction of a millisecond.
	crowd = 128
	// longestSent is the length, in bytes, of the longest text that is sent to be
	// compared. A longer one costs more than a refresh of its own.
	longestSent = 1 << 10

	scriptsAtOnce = 4
	singlesAtOnce = 8 // for each node of a cluster
)

// RefreshAll implements [kv.Batch] with a script for each crowd of records. The script
// refreshes what has exactly the text expected, and decides nothing about the rest:
// each of these is refreshed by itself, as are the records of a cluster, those with
// plain values, and those that are long.
func (s *Store) RefreshAll(ctx context.Context, records []kv.Held, tell func(int, kv.Record, error)) {
	b := &batch{
		store: s, records: records, tell: tell,
		scripts: gate.Fixed(scriptsAtOnce), singles: gate.Fixed(singlesAtOnce),
	}
	together, alone := b.parted()
	var going sync.WaitGroup
	for some := range slices.Chunk(together, crowd) {
		going.Go(func() { b.together(ctx, some) })
	}
	for _, some := range b.lanes(ctx, alone) {
		going.Go(func() { b.alone(ctx, gate.Fixed(singlesAtOnce), some) })
	}
	going.Wait()
}

// A batch is one call of RefreshAll.
type batch struct {
	store            *Store
	records          []kv.Held
	tell             func(int, kv.Record, error)
	scripts, singles *gate.Gate
}

// An expectation is what a key has to hold, so that it can be refreshed with others.
type expectation struct {
	index int
	key   string
	text  string
	ttl   time.Duration
}

// parted returns what scripts can refresh, and the indexes of the rest.
func (b *batch) parted() (together []expectation, alone []int) {
	_, cluster := b.store.client.(*redis.ClusterClient)
	together = make([]expectation, 0, len(b.records))
	for i, held := range b.records {
		want, ok := b.store.expected(held)
		if cluster || !ok {
			alone = append(alone, i)
			continue
		}
		want.index = i
		together = append(together, want)
	}
	return together, alone
}

// expected returns what the key of a record holds as long as nothing has changed. It
// reports false where a text cannot tell, or is not worth sending.
func (s *Store) expected(held kv.Held) (expectation, bool) {
	rec := held.Record
	at, err := s.of(held.Name).place(held.Name)
	if err != nil || s.of(held.Name).plain || len(rec.Value)+len(rec.Note) > longestSent || checkNew(held.Name, rec) != nil {
		return expectation{}, false
	}
	ttl, err := granted(rec.TTL)
	if err != nil || rec.Token == 0 || rec.Revision == 0 {
		return expectation{}, false
	}
	text := kv.Encode(refreshed(rec, ttl))
	return expectation{key: at.record, text: text, ttl: ttl}, len(text) <= longestSent
}

// refreshed returns what the key of a record holds after a refresh.
func refreshed(rec kv.Record, ttl time.Duration) kv.Record {
	return kv.Record{Signature: rec.Signature, Value: rec.Value, Note: rec.Note, Token: rec.Token, Revision: rec.Revision, TTL: ttl}
}

// together refreshes records by one script, and those by themselves that the script
// could not confirm.
func (b *batch) together(ctx context.Context, some []expectation) {
	keys, args := make([]string, len(some)), make([]any, 0, 2*len(some))
	for i, want := range some {
		keys[i] = want.key
		args = append(args, want.text, want.ttl.Milliseconds())
	}
	var reply any
	var err error
	b.scripts.Do(ctx, func() { reply, err = b.store.run(ctx, batchScript, keys, args...) })
	if err != nil && !errors.Is(err, redis.Nil) && !ofKeys(err) {
		for _, want := range some {
			b.tell(want.index, kv.Record{}, outcome("refresh", b.records[want.index].Name, err, kv.ErrStale))
		}
		return
	}
	marks, _ := reply.(string) // what is no mark confirms nothing, nor does it refuse
	var rest []int
	for i, want := range some {
		if i < len(marks) && marks[i] == '1' {
			held := b.records[want.index]
			rec := refreshed(held.Record, want.ttl)
			b.store.confirmed(held.Name, rec)
			b.tell(want.index, rec, nil)
		} else {
			rest = append(rest, want.index)
		}
	}
	b.alone(ctx, b.singles, rest)
}

// ofKeys reports whether a server refused a script for the keys that it names: a user
// may not touch all of them, or they are at several nodes of a cluster. Then nothing
// was done, and each of the records may be refreshed by itself.
func ofKeys(err error) bool {
	return redis.HasErrorPrefix(err, "NOPERM") || redis.HasErrorPrefix(err, "CROSSSLOT")
}

// alone refreshes records one by one, as many at once as the gate lets through.
func (b *batch) alone(ctx context.Context, g *gate.Gate, some []int) {
	g.Each(ctx, some, func(i int) {
		rec, err := b.store.Refresh(ctx, b.records[i].Name, b.records[i].Record)
		b.tell(i, rec, err)
	})
}

// lanes parts records by the node of a cluster that has them, so that a node that hangs
// holds up no records but its own.
func (b *batch) lanes(ctx context.Context, some []int) map[string][]int {
	all := map[string][]int{"": some}
	cluster, ok := b.store.client.(*redis.ClusterClient)
	if !ok || len(some) == 0 {
		return all
	}
	// The client asks the cluster for its nodes, if it does not know them yet.
	lanes, err := await(ctx, func() (map[string][]int, error) {
		lanes := make(map[string][]int)
		for _, i := range some {
			at, _ := b.store.place(b.records[i].Name) // none of a name that is refused without a request
			node, err := cluster.MasterForKey(ctx, at.record)
			if err != nil {
				return nil, err
			}
			addr := node.Options().Addr
			lanes[addr] = append(lanes[addr], i)
		}
		return lanes, nil
	})
	if err != nil {
		return all
	}
	return lanes
}
