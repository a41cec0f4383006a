package kvtest_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/internal/mistake"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvtest"
)

// A breach is a way in which a store can break the contract, and the case that
// must notice. Others may notice too.
type breach struct {
	sentence string
	noticed  string
	// open breaks the good store.
	open func(good *memkv.Store) kv.Store
	// line, in the place of open, breaks one with lines.
	line func(good *memkv.Queue) kv.Store
	// each is set if each client is broken by itself.
	each bool
	// requests, if not nil, is what the broken stores count.
	requests func() int64
}

func TestEachBreachIsNoticedAndEachCaseNoticesOne(t *testing.T) {
	useless := map[string]bool{}
	for _, c := range kvtest.Cases() {
		useless[c.Name] = true
	}
	for _, b := range slices.Concat(createBreaches, writeBreaches, tokenBreaches, leaseBreaches, timeBreaches, foreignBreaches, watchBreaches, nameBreaches, contextBreaches, queueBreaches, noteBreaches, lastingBreaches, oneStepBreaches, vacateBreaches, boardBreaches, batchBreaches, rosterBreaches) {
		t.Run(b.sentence, func(t *testing.T) {
			noticed := map[string]string{}
			for _, c := range kvtest.Cases() {
				passed, text := judge(t, c, b.backend)
				if passed {
					continue
				}
				require.Contains(t, text, c.Clause, "a failure says what it is about")
				noticed[c.Name] = text
				delete(useless, c.Name)
			}
			t.Logf("noticed by %d cases: %q", len(noticed), names(noticed))
			if noticed[b.noticed] == "" {
				mistake.Missed(t, fmt.Sprintf("the case %q passes", b.noticed))
			}
		})
	}
	require.Empty(t, useless, "cases that notice no breach")
}

func names(noticed map[string]string) []string {
	var names []string
	for _, c := range kvtest.Cases() {
		if _, ok := noticed[c.Name]; ok {
			names = append(names, c.Name)
		}
	}
	return names
}

func (b breach) backend() kvtest.Backend {
	var backend kvtest.Backend
	var open func() kv.Store
	if b.line != nil {
		good := memkv.NewQueue()
		backend = memory(&good.Store)
		backend.Line = func(_ testing.TB, name, value string) { good.PutLast(name, value) }
		open = func() kv.Store { return b.line(good) }
	} else {
		good := memkv.New()
		backend = memory(good)
		open = func() kv.Store { return b.open(good) }
	}
	store := open()
	backend.Open = func(testing.TB) kv.Store {
		if b.each {
			return open()
		}
		return store
	}
	backend.Requests = b.requests
	backend.Quit = func(_ testing.TB, s kv.Store) {
		if p, ok := s.(*process); ok {
			p.quit()
		}
	}
	return backend
}

// A broken store is a good one but for the operations that are set.
type broken struct {
	*memkv.Store
	create  func(context.Context, string, kv.Record) (kv.Record, error)
	swap    func(context.Context, string, kv.Record, kv.Record) (kv.Record, error)
	refresh func(context.Context, string, kv.Record) (kv.Record, error)
	delete  func(context.Context, string, kv.Record) error
	get     func(context.Context, string) (kv.Record, error)
	watch   func(context.Context, string) iter.Seq2[kv.Record, error]
	join    func(context.Context, string, kv.Record) (kv.Record, error)
	stay    func(context.Context, string, kv.Record) (kv.Record, bool, error)
	life    func(time.Duration) (kv.Lifetime, error)
	whole   func(context.Context, string, kv.Record, string, kv.Record, string) (kv.Record, error)
	vacate  func(context.Context, string, kv.Record, string) (kv.Record, error)
	follow  func(string, func(kv.Record, error)) func()
	members func(context.Context, string, int) ([]kv.Held, uint64, error)
	await   func(context.Context, string, uint64) error
}

func (b *broken) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	if b.create != nil {
		return b.create(ctx, name, rec)
	}
	return b.Store.Create(ctx, name, rec)
}

func (b *broken) Swap(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
	if b.swap != nil {
		return b.swap(ctx, name, old, next)
	}
	return b.Store.Swap(ctx, name, old, next)
}

func (b *broken) Refresh(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	if b.refresh != nil {
		return b.refresh(ctx, name, rec)
	}
	return b.Store.Refresh(ctx, name, rec)
}

func (b *broken) Delete(ctx context.Context, name string, rec kv.Record) error {
	if b.delete != nil {
		return b.delete(ctx, name, rec)
	}
	return b.Store.Delete(ctx, name, rec)
}

func (b *broken) Get(ctx context.Context, name string) (kv.Record, error) {
	if b.get != nil {
		return b.get(ctx, name)
	}
	return b.Store.Get(ctx, name)
}

func (b *broken) Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	if b.watch != nil {
		return b.watch(ctx, name)
	}
	return b.Store.Watch(ctx, name)
}

func (b *broken) Lifetime(ttl time.Duration) (kv.Lifetime, error) {
	if b.life != nil {
		return b.life(ttl)
	}
	return b.Store.Lifetime(ttl)
}

func (b *broken) HandOver(ctx context.Context, name string, old kv.Record, place string, heir kv.Record, note string) (kv.Record, error) {
	if b.whole != nil {
		return b.whole(ctx, name, old, place, heir, note)
	}
	return b.Store.HandOver(ctx, name, old, place, heir, note)
}

func (b *broken) Vacate(ctx context.Context, name string, rec kv.Record, place string) (kv.Record, error) {
	if b.vacate != nil {
		return b.vacate(ctx, name, rec, place)
	}
	return b.Store.Vacate(ctx, name, rec, place)
}

func (b *broken) Follow(name string, tell func(kv.Record, error)) (stop func()) {
	if b.follow != nil {
		return b.follow(name, tell)
	}
	return b.Store.Follow(name, tell)
}

// A brokenQueue is a good one but for the operations that are set.
type brokenQueue struct {
	*broken
	line *memkv.Queue
}

// inLine is a good store with lines but for the operations that are set.
func inLine(good *memkv.Queue, b *broken) kv.Store {
	b.Store = &good.Store
	return &brokenQueue{b, good}
}

func (b *brokenQueue) Join(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	if b.join != nil {
		return b.join(ctx, name, rec)
	}
	return b.line.Join(ctx, name, rec)
}

func (b *brokenQueue) Stay(ctx context.Context, name string, rec kv.Record) (kv.Record, bool, error) {
	if b.stay != nil {
		return b.stay(ctx, name, rec)
	}
	return b.line.Stay(ctx, name, rec)
}
