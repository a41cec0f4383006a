package kvtest_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvtest"
)

var boardBreaches = []breach{
	{
		sentence: "a follow does not tell the present state",
		noticed:  "a follow tells the present state first",
		open: func(good *memkv.Store) kv.Store {
			return telling(good, func(n int, _ kv.Record, _ error) bool { return n == 0 })
		},
	},
	{
		sentence: "a follow tells the present state alone",
		noticed:  "a follow tells each later state",
		open: func(good *memkv.Store) kv.Store {
			return telling(good, func(n int, _ kv.Record, _ error) bool { return n > 0 })
		},
	},
	{
		sentence: "a follow does not see what operators do",
		noticed:  "a follow tells a removal by an operator",
		open: func(good *memkv.Store) kv.Store {
			return telling(good, func(n int, _ kv.Record, err error) bool { return n > 0 && err != nil })
		},
	},
	{
		sentence: "a follow misses the vacancy",
		noticed:  "a follow alone sees a record fade, in time and not early",
		open: func(good *memkv.Store) kv.Store {
			return telling(good, func(n int, _ kv.Record, err error) bool { return n > 0 && err != nil })
		},
	},
	{
		sentence: "a follow tells of a vacancy before the record has faded",
		noticed:  "a follow alone sees a record fade, in time and not early",
		open: func(good *memkv.Store) kv.Store {
			return running(good, func(ctx context.Context, name string, tell func(kv.Record, error)) {
				for rec, err := range good.Watch(ctx, name) {
					tell(rec, err)
					if err == nil && rec.TTL <= 10*time.Second {
						time.Sleep(rec.TTL - rec.TTL/50)
						tell(kv.Record{}, kv.ErrVacant)
					}
				}
			})
		},
	},
	{
		sentence: "a follow tells what has not changed",
		noticed:  "a refresh is no change to a follow",
		open: func(good *memkv.Store) kv.Store {
			return running(good, func(ctx context.Context, name string, tell func(kv.Record, error)) {
				for ctx.Err() == nil {
					tell(good.Get(ctx, name))
					time.Sleep(50 * time.Millisecond)
				}
			})
		},
	},
	{
		sentence: "a follow looks first and listens then",
		noticed:  "a follow that begins during a change does not miss it",
		open: func(good *memkv.Store) kv.Store {
			return running(good, func(ctx context.Context, name string, tell func(kv.Record, error)) {
				tell(good.Get(ctx, name))
				time.Sleep(time.Millisecond)
				n := 0
				for rec, err := range good.Watch(ctx, name) {
					if n++; n > 1 {
						tell(rec, err)
					}
				}
			})
		},
	},
	{
		sentence: "a follow goes back",
		noticed:  "a follow never goes back",
		open: func(good *memkv.Store) kv.Store {
			return running(good, func(ctx context.Context, name string, tell func(kv.Record, error)) {
				var seen []kv.Record
				for rec, err := range good.Watch(ctx, name) {
					tell(rec, err)
					if seen = append(seen, rec); len(seen) == 5 {
						tell(seen[slices.IndexFunc(seen, func(r kv.Record) bool { return r.Token > 0 })], nil)
					}
				}
			})
		},
	},
	{
		sentence: "a follow of an invalid name sees a vacant safe",
		noticed:  "a follow tells why a name is invalid, and nothing else",
		open: func(good *memkv.Store) kv.Store {
			return refusing(good, func(tell func(kv.Record, error)) { tell(kv.Record{}, kv.ErrVacant) })
		},
	},
	{
		sentence: "a follow of an invalid name says so again",
		noticed:  "a follow tells why a name is invalid, and nothing else",
		open: func(good *memkv.Store) kv.Store {
			return refusing(good, func(tell func(kv.Record, error)) {
				tell(kv.Record{}, kv.ErrInvalid)
				tell(kv.Record{}, kv.ErrInvalid)
			})
		},
	},
	{
		sentence: "a follow keeps all states for a slow one",
		noticed:  "a follow tells a slow one the newest state, one call at a time",
		open: func(good *memkv.Store) kv.Store {
			keeping := backlogged(good, math.MaxInt)
			return running(good, func(ctx context.Context, name string, tell func(kv.Record, error)) {
				for rec, err := range keeping.Watch(ctx, name) {
					tell(rec, err)
				}
			})
		},
	},
	{
		sentence: "a follow does not wait for a slow one",
		noticed:  "a follow tells a slow one the newest state, one call at a time",
		open: func(good *memkv.Store) kv.Store {
			return running(good, func(ctx context.Context, name string, tell func(kv.Record, error)) {
				var calls sync.WaitGroup
				defer calls.Wait()
				for rec, err := range good.Watch(ctx, name) {
					calls.Go(func() { tell(rec, err) })
				}
			})
		},
	},
	{
		sentence: "a slow one misses the last state",
		noticed:  "a follow tells a slow one the newest state, one call at a time",
		open: func(good *memkv.Store) kv.Store {
			return telling(good, func(_ int, rec kv.Record, _ error) bool { return len(rec.Value) == len("begun")+40 })
		},
	},
	{
		sentence: "a follow goes on for a while after its stop",
		noticed:  "a follow tells nothing after its stop",
		open: func(good *memkv.Store) kv.Store {
			return stopping(good, func(_ string, stop func()) { time.AfterFunc(100*time.Millisecond, stop) })
		},
	},
	{
		sentence: "a stop does not wait",
		noticed:  "the stop of a follow waits for a call that is under way",
		open: func(good *memkv.Store) kv.Store {
			return stopping(good, func(_ string, stop func()) { go stop() })
		},
	},
	{
		sentence: "a second stop ends somebody else's follow",
		noticed:  "a follow may be stopped more than once",
		open: func(good *memkv.Store) kv.Store {
			var all follows
			return &broken{Store: good, follow: func(name string, tell func(kv.Record, error)) func() {
				all.add(name, good.Follow(name, tell))
				return func() { all.pop(name)() }
			}}
		},
	},
	{
		sentence: "a second stop waits for what has been",
		noticed:  "a follow may be stopped more than once",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, follow: func(name string, tell func(kv.Record, error)) func() {
				stop := good.Follow(name, tell)
				first := make(chan struct{}, 1)
				first <- struct{}{}
				return func() {
					stop()
					select {
					case <-first:
					case <-time.After(time.Minute):
					}
				}
			}}
		},
	},
	{
		sentence: "the first stop ends all follows of a safe",
		noticed:  "a follow that is stopped does not end another",
		open: func(good *memkv.Store) kv.Store {
			var all follows
			return &broken{Store: good, follow: func(name string, tell func(kv.Record, error)) func() {
				all.add(name, good.Follow(name, tell))
				return func() {
					for range all.len(name) {
						all.pop(name)()
					}
				}
			}}
		},
	},
	{
		sentence: "a follow is a goroutine",
		noticed:  "many follows cost few goroutines",
		open: func(good *memkv.Store) kv.Store {
			return running(good, func(ctx context.Context, name string, tell func(kv.Record, error)) {
				for rec, err := range good.Watch(ctx, name) {
					tell(rec, err)
				}
			})
		},
	},
	{
		sentence: "a stop leaves a goroutine behind",
		noticed:  "follows leave no goroutines behind",
		open: func(good *memkv.Store) kv.Store {
			return stopping(good, func(_ string, stop func()) {
				stop()
				go time.Sleep(time.Minute)
			})
		},
	},
}

// telling hides some of what a follow tells; n counts what it has told before.
func telling(good *memkv.Store, hide func(n int, rec kv.Record, err error) bool) kv.Store {
	return &broken{Store: good, follow: func(name string, tell func(kv.Record, error)) func() {
		n := -1
		return good.Follow(name, func(rec kv.Record, err error) {
			if n++; !hide(n, rec, err) {
				tell(rec, err)
			}
		})
	}}
}

// stopping stops otherwise.
func stopping(good *memkv.Store, stop func(name string, stop func())) kv.Store {
	return &broken{Store: good, follow: func(name string, tell func(kv.Record, error)) func() {
		inner := good.Follow(name, tell)
		return func() { stop(name, inner) }
	}}
}

// running follows by a goroutine that runs until the stop; the end of its context is no
// news.
func running(good *memkv.Store, run func(ctx context.Context, name string, tell func(kv.Record, error))) kv.Store {
	return &broken{Store: good, follow: func(name string, tell func(kv.Record, error)) func() {
		ctx, cancel := context.WithCancel(context.Background())
		var over sync.WaitGroup
		over.Go(func() {
			run(ctx, name, func(rec kv.Record, err error) {
				if !errors.Is(err, context.Canceled) {
					tell(rec, err)
				}
			})
		})
		return func() {
			cancel()
			over.Wait()
		}
	}}
}

// refusing says something else of the empty name.
func refusing(good *memkv.Store, say func(tell func(kv.Record, error))) kv.Store {
	return &broken{Store: good, follow: func(name string, tell func(kv.Record, error)) func() {
		if name != "" {
			return good.Follow(name, tell)
		}
		var over sync.WaitGroup
		over.Go(func() { say(tell) })
		return over.Wait
	}}
}

// A follows knows the stops of each safe's follows, and confuses them.
type follows struct {
	mu    sync.Mutex
	stops map[string][]func()
}

func (f *follows) add(name string, stop func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stops == nil {
		f.stops = make(map[string][]func())
	}
	f.stops[name] = append(f.stops[name], stop)
}

func (f *follows) len(name string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.stops[name])
}

// pop takes away the oldest stop that is left.
func (f *follows) pop(name string) (stop func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.stops[name]) == 0 {
		return func() {}
	}
	stop, f.stops[name] = f.stops[name][0], f.stops[name][1:]
	return stop
}

func TestAStoreThatIsNoBoardIsNotFollowed(t *testing.T) {
	good := memkv.New()
	b := memory(good)
	b.Open = func(testing.TB) kv.Store { return struct{ kv.Store }{good} }
	requireSkipped(t, b, boardBreaches, 15)
}

// requireSkipped requires that so many cases, those that notice the breaches, are skipped.
func requireSkipped(t *testing.T, b kvtest.Backend, breaches []breach, want int) {
	t.Helper()
	skipped := 0
	for _, c := range kvtest.Cases() {
		if !slices.ContainsFunc(breaches, func(b breach) bool { return b.noticed == c.Name }) {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Cleanup(func() {
				if t.Skipped() {
					skipped++
				}
			})
			c.Run(t, b)
		})
	}
	require.Equal(t, want, skipped)
}
