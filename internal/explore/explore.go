// Package explore looks at everything that can happen to a small world, to a depth: tests of
// pure cores use it. Worlds that go on alike are looked at once.
package explore

import (
	"fmt"
	"hash/maphash"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// A World is the state of all that a test has in view. M is a move: one thing that can happen next.
type World[W any, M fmt.Stringer] interface {
	// Moves returns everything that can happen next.
	Moves() []M
	// After returns the world after a move. It leaves this one as it is.
	After(m M) W
	// Text says all on which it depends how the world can go on.
	Text() []byte
	// Trouble says which promise is broken; nothing if none is.
	Trouble() string
}

// An Explorer looks at every world that can come about in so many moves. It is used once.
type Explorer[W World[W, M], M fmt.Stringer] struct {
	// Met, if set, is called for each different world, by several goroutines at the same time.
	Met func(w W)

	Worlds atomic.Int64 // that are different
	Steps  atomic.Int64 // moves that were made

	seeds  [2]maphash.Seed
	shards [64]shard
	found  atomic.Pointer[string]
}

// A key is a short name of a world: two hashes of its text, of which one alone might meet by chance.
type key [2]uint64

// A shard has the worlds that were seen, with how many moves were left then.
type shard struct {
	sync.Mutex
	seen map[key]int8
}

// Run explores what can come of a world in so many moves, with all processors. It returns the first
// trouble that it has found, with the moves that lead there, or nothing.
func (e *Explorer[W, M]) Run(w W, depth int) (trouble string) {
	e.seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}
	for i := range e.shards {
		e.shards[i].seen = make(map[key]int8)
	}
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // what it allocates is mostly kept
	type start struct {
		w    W
		path []M
	}
	starts, split := []start{{w: w}}, min(3, depth)
	for range split {
		var next []start
		for _, s := range starts {
			for _, m := range s.w.Moves() {
				next = append(next, start{s.w.After(m), append(slices.Clone(s.path), m)})
			}
		}
		starts = next
	}
	var all sync.WaitGroup
	work := make(chan start)
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for s := range work {
				if !e.broken(s.w, s.path) && e.news(s.w, depth-split) {
					e.from(s.w, depth-split, s.path)
				}
			}
		})
	}
	for _, s := range starts {
		work <- s
	}
	close(work)
	all.Wait()
	if found := e.found.Load(); found != nil {
		return *found
	}
	return ""
}

// from explores what can come of a world.
func (e *Explorer[W, M]) from(w W, left int, path []M) {
	if left == 0 || e.found.Load() != nil {
		return
	}
	for _, m := range w.Moves() {
		v, way := w.After(m), append(path, m)
		e.Steps.Add(1)
		if e.broken(v, way) {
			return
		}
		if e.news(v, left-1) {
			e.from(v, left-1, way)
		}
	}
}

// broken notes the trouble of a world, if there is any.
func (e *Explorer[W, M]) broken(w W, path []M) bool {
	text := w.Trouble()
	if text == "" {
		return false
	}
	text += Tale(path)
	e.found.CompareAndSwap(nil, &text)
	return true
}

// Tale tells moves, a line for each.
func Tale[M fmt.Stringer](path []M) string {
	var text strings.Builder
	for _, m := range path {
		text.WriteString("\n  " + m.String())
	}
	return text.String()
}

// news reports whether a world was not seen with so many moves left, or more.
func (e *Explorer[W, M]) news(w W, left int) bool {
	text := w.Text()
	k := key{maphash.Bytes(e.seeds[0], text), maphash.Bytes(e.seeds[1], text)}
	s := &e.shards[k[0]%uint64(len(e.shards))]
	s.Lock()
	before, seen := s.seen[k]
	news := !seen || int(before) < left
	if news {
		s.seen[k] = int8(left) //nolint:gosec // nobody explores so deep
	}
	s.Unlock()
	if !seen {
		e.Worlds.Add(1)
		if e.Met != nil {
			e.Met(w)
		}
	}
	return news
}
