package kvtest_test

import (
	"context"
	"errors"
	"iter"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/internal/mistake"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvtest"
)

// asked counts what a store asks that counts its requests.
var asked atomic.Int64

var watchBreaches = []breach{
	{
		sentence: "a watch misses the vacancy",
		noticed:  "a watch alone sees a record fade, in time and not early",
		open: func(good *memkv.Store) kv.Store {
			return withSightings(good, func(n int, _ kv.Record, err error) bool {
				return n > 0 && errors.Is(err, kv.ErrVacant)
			})
		},
	},
	{
		sentence: "a watch does not yield the present state",
		noticed:  "a watch yields the present state first",
		open: func(good *memkv.Store) kv.Store {
			return withSightings(good, func(n int, _ kv.Record, err error) bool { return n == 0 })
		},
	},
	{
		sentence: "a watch yields the present state alone",
		noticed:  "a watch yields each later state",
		open: func(good *memkv.Store) kv.Store {
			return withSightings(good, func(n int, _ kv.Record, err error) bool {
				return n > 0 && (err == nil || errors.Is(err, kv.ErrVacant))
			})
		},
	},
	{
		sentence: "a watch misses a new owner",
		noticed:  "a watch yields a hand-over",
		open: func(good *memkv.Store) kv.Store {
			return withSightings(good, func(n int, rec kv.Record, _ error) bool {
				return rec.Value == "you lead" || rec.Value == "the next"
			})
		},
	},
	{
		sentence: "a watch does not see what operators do",
		noticed:  "a watch yields a removal by an operator",
		open: func(good *memkv.Store) kv.Store {
			return withSightings(good, func(n int, _ kv.Record, err error) bool {
				return n > 0 && errors.Is(err, kv.ErrVacant)
			})
		},
	},
	{
		sentence: "a watch does not report foreign records",
		noticed:  "a watch reports a foreign record and its removal",
		open: func(good *memkv.Store) kv.Store {
			return withSightings(good, func(_ int, rec kv.Record, _ error) bool { return rec.Foreign })
		},
	},
	{
		sentence: "a watch ends at a vacancy",
		noticed:  "a watch yields each later state",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, watch: func(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
				return func(yield func(kv.Record, error) bool) {
					for rec, err := range good.Watch(ctx, name) {
						if !yield(rec, err) || err != nil {
							return
						}
					}
				}
			}}
		},
	},
	{
		sentence: "a watch yields what has not changed",
		noticed:  "a refresh is no change to a watch",
		open:     func(good *memkv.Store) kv.Store { return polling(good, 50*time.Millisecond, true) },
	},
	{
		sentence: "a watch yields a foreign record again and again",
		noticed:  "a watch of a foreign record is idle",
		open:     func(good *memkv.Store) kv.Store { return polling(good, time.Millisecond, true) },
	},
	{
		sentence: "a watch asks all the time",
		noticed:  "a watch of an unchanged safe is idle",
		open:     func(good *memkv.Store) kv.Store { return polling(good, 10*time.Millisecond, false) },
		requests: asked.Load,
	},
	{
		sentence: "a watch asks at each refresh, and asks much",
		noticed:  "a watch of a record that is refreshed is idle",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, refresh: func(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
				asked.Add(100)
				return good.Refresh(ctx, name, rec)
			}}
		},
		requests: asked.Load,
	},
	{
		sentence: "a watch yields each state twice",
		noticed:  "a slow reader sees the last state",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, watch: func(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
				return func(yield func(kv.Record, error) bool) {
					for rec, err := range good.Watch(ctx, name) {
						for range 40 {
							if !yield(rec, err) {
								return
							}
						}
					}
				}
			}}
		},
	},
	{
		sentence: "a slow reader misses the last state",
		noticed:  "a slow reader sees the last state",
		open: func(good *memkv.Store) kv.Store {
			return withSightings(good, func(_ int, rec kv.Record, _ error) bool {
				return len(rec.Value) == len("held")+30
			})
		},
	},
	{
		sentence: "a watch keeps all states for a slow reader",
		noticed:  "a slow reader is told the newest state, not each",
		open:     func(good *memkv.Store) kv.Store { return backlogged(good, math.MaxInt) },
	},
	{
		sentence: "a watch keeps some states for a slow reader, and the newest waits behind them",
		noticed:  "a slow reader is told the newest state, not each",
		open:     func(good *memkv.Store) kv.Store { return backlogged(good, 16) },
	},
	{
		sentence: "a watch has no room for what comes while its reader is busy",
		noticed:  "a slow reader is told the newest state, not each",
		open:     func(good *memkv.Store) kv.Store { return backlogged(good, 0) },
	},
	{
		sentence: "a watch goes back",
		noticed:  "a watch never goes back",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, watch: func(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
				return func(yield func(kv.Record, error) bool) {
					var seen []kv.Record
					for rec, err := range good.Watch(ctx, name) {
						if !yield(rec, err) {
							return
						}
						if seen = append(seen, rec); len(seen) == 5 && !yield(seen[slices.IndexFunc(seen, func(r kv.Record) bool { return r.Token > 0 })], nil) {
							return
						}
					}
				}
			}}
		},
	},
	{
		sentence: "a watch looks first and listens then",
		noticed:  "a watch that begins during a change does not miss it",
		open: func(good *memkv.Store) kv.Store {
			return &broken{Store: good, watch: func(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
				return func(yield func(kv.Record, error) bool) {
					if rec, err := good.Get(ctx, name); !yield(rec, err) || err != nil && !errors.Is(err, kv.ErrVacant) {
						return
					}
					time.Sleep(time.Millisecond)
					n := 0
					for rec, err := range good.Watch(ctx, name) {
						if n++; n > 1 && !yield(rec, err) {
							return
						}
					}
				}
			}}
		},
	},
	{
		sentence: "a store can watch one safe at a time",
		noticed:  "many safes are watched at once",
		each:     true,
		open:     func(good *memkv.Store) kv.Store { return deafAfter(good, 10) },
	},
	{
		sentence: "a store can watch one safe once",
		noticed:  "two watches see the same",
		each:     true,
		open:     func(good *memkv.Store) kv.Store { return deafAfter(good, 0) },
	},
	{
		sentence: "the first watch that ends takes all others along",
		noticed:  "a watch that ends does not end another",
		open: func(good *memkv.Store) kv.Store {
			connection, cut := context.WithCancelCause(context.Background())
			return &broken{Store: good, watch: func(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
				return func(yield func(kv.Record, error) bool) {
					defer cut(errors.New("the connection is gone"))
					ctx, cancel := context.WithCancelCause(ctx)
					defer cancel(nil)
					defer context.AfterFunc(connection, func() { cancel(context.Cause(connection)) })()
					for rec, err := range good.Watch(ctx, name) {
						if gone := context.Cause(connection); gone != nil { // news may outrun the cancellation
							rec, err = kv.Record{}, gone
						}
						if !yield(rec, err) || connection.Err() != nil {
							return
						}
					}
				}
			}}
		},
	},
}

// withSightings hides some of what a watch sees; n counts what it has seen
// before.
func withSightings(good *memkv.Store, hide func(n int, rec kv.Record, err error) bool) *broken {
	return &broken{Store: good, watch: func(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
		return func(yield func(kv.Record, error) bool) {
			n := -1
			for rec, err := range good.Watch(ctx, name) {
				n++
				if !hide(n, rec, err) && !yield(rec, err) {
					return
				}
			}
		}
	}}
}

// polling watches by looks with pauses, and yields each look's result or the
// changes alone.
func polling(good *memkv.Store, pause time.Duration, each bool) kv.Store {
	return &broken{Store: good, watch: func(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
		return func(yield func(kv.Record, error) bool) {
			var last kv.Record
			for first := true; ; first = false {
				asked.Add(1)
				rec, err := good.Get(ctx, name)
				if (first || each || rec != last) && !yield(rec, err) || ctx.Err() != nil {
					return
				}
				last = rec
				select {
				case <-ctx.Done():
				case <-time.After(pause):
				}
			}
		}
	}}
}

// backlogged watches as the good store does, and puts what it sees into a queue of
// that size at most, the newest into its last place. With no room, what comes while
// the reader is busy is lost.
func backlogged(good *memkv.Store, room int) kv.Store {
	type sighting struct {
		rec kv.Record
		err error
	}
	return &broken{Store: good, watch: func(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
		return func(yield func(kv.Record, error) bool) {
			ctx, cancel := context.WithCancel(ctx)
			var (
				mu      sync.Mutex
				queue   []sighting
				reading bool // the reader waits for something
				more    = sync.NewCond(&mu)
				over    sync.WaitGroup
			)
			defer over.Wait()
			defer cancel()
			over.Go(func() {
				for rec, err := range good.Watch(ctx, name) {
					mu.Lock()
					switch last := err != nil && !errors.Is(err, kv.ErrVacant); {
					case last, reading, len(queue) < room:
						queue = append(queue, sighting{rec, err})
						reading = false
					case room > 0:
						queue[len(queue)-1] = sighting{rec, err}
					}
					more.Signal()
					mu.Unlock()
				}
			})
			for {
				mu.Lock()
				for len(queue) == 0 {
					reading = true
					more.Wait()
				}
				next := queue[0]
				queue = queue[1:]
				mu.Unlock()
				if !yield(next.rec, next.err) || next.err != nil && !errors.Is(next.err, kv.ErrVacant) {
					return
				}
			}
		}
	}}
}

// deafAfter lets a client's first n+1 watches hear; later ones hear the present
// state alone.
func deafAfter(good *memkv.Store, n int64) kv.Store {
	var watches atomic.Int64
	return &broken{Store: good, watch: func(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
		return func(yield func(kv.Record, error) bool) {
			deaf := watches.Add(1) > n
			for rec, err := range good.Watch(ctx, name) {
				if !yield(rec, err) {
					return
				}
				if deaf {
					<-ctx.Done()
				}
			}
		}
	}}
}

func TestAWatchThatKeepsAProcessorBusyIsNoticed(t *testing.T) {
	good := memkv.New()
	spinning := &broken{Store: good, watch: func(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
		return func(yield func(kv.Record, error) bool) {
			for rec, err := range good.Watch(ctx, name) {
				if !yield(rec, err) {
					return
				}
				for now := rec; now == rec && ctx.Err() == nil; now, _ = good.Get(ctx, name) {
					runtime.Gosched()
				}
			}
		}
	}}
	backend := memory(good)
	backend.Open = func(testing.TB) kv.Store { return spinning }
	all := kvtest.Cases()
	idle := all[slices.IndexFunc(all, func(c kvtest.Case) bool { return c.Name == "a watch of an unchanged safe is idle" })]
	// On a machine that is busy otherwise, a loop may get too little to be noticed.
	var last string
	for range 10 {
		v := &verdict{TB: t}
		v.run(idle, backend)
		last = v.text.String()
		if v.Failed() {
			require.Regexp(t, "cost .* of a processor", v.text.String())
			return
		}
	}
	mistake.Missed(t, "the case passes ten times, and says: "+last)
}
