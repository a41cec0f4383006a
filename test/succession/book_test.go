//go:build unix

package succession_test

import (
	"context"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/views"
	"github.com/electkv/election/kv"
)

// What candidates ask of their store, and are told by it, in entry.op. A swap
// either publishes, under the same signature, or puts in another one.
const (
	create  = "create"
	publish = "publish"
	swap    = "swap"
	refresh = "refresh"
	remove  = "delete"
	get     = "get"
	watch   = "watch"
	told    = "told" // a watch yielded something
)

// The safes of an election, in entry.safe.
const (
	leaders  = ""
	heirs    = ":heir"
	requests = ":request"
)

// An entry is one line of a book.
type entry struct {
	at     time.Duration
	who    string
	op     string
	safe   string
	result string // as package history calls it; empty while there is none
}

// A book is where the candidates of an election write down what they ask of their
// stores and what watches tell them, each line before it is sent or acted upon.
type book struct {
	name string // of the election

	mu      sync.Mutex
	entries []entry
	gate    func(entry) bool // who is held back
	opened  chan struct{}    // closed when nobody is held back any more
}

func newBook(name string) *book { return &book{name: name} }

// open returns a view of a store that writes down what who does. What concerns
// the leaders' safe goes through the view that is given for it.
func (b *book) open(who string, store, leading kv.Store) kv.Store {
	return views.Over(store, &noted{Store: store, leading: leading, who: who, book: b})
}

// page returns how many lines the book has.
func (b *book) page() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.entries)
}

// count returns how many lines match.
func (b *book) count(match func(entry) bool) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.entries {
		if match(e) {
			n++
		}
	}
	return n
}

// since returns the lines after a page that match.
func (b *book) since(page int, match func(entry) bool) []entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	found := []entry{}
	for _, e := range b.entries[page:] {
		if match(e) {
			found = append(found, e)
		}
	}
	return found
}

// hold keeps requests that match from being sent until open is called. Those of
// whom it gives up meanwhile are never sent.
func (b *book) hold(match func(entry) bool) (open func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	opened := make(chan struct{})
	b.gate, b.opened = match, opened
	return sync.OnceFunc(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.gate = nil
		close(opened)
	})
}

// write adds a line, and returns its number.
func (b *book) write(e entry) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	e.at = boottime.Now()
	b.entries = append(b.entries, e)
	return len(b.entries) - 1
}

func (b *book) answer(line int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.entries[line].result = history.ResultOf(err)
}

// pass waits until e may be sent.
func (b *book) pass(ctx context.Context, e entry) error {
	b.mu.Lock()
	held, opened := b.gate != nil && b.gate(e), b.opened
	b.mu.Unlock()
	if !held {
		return nil
	}
	select {
	case <-opened:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// of returns who did something that is written down in lines, each once.
func of(entries []entry) []string {
	names := []string{}
	for _, e := range entries {
		names = append(names, e.who)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// asks matches what is sent.
func asks(e entry) bool { return e.op != told }

// A noted is a store whose use is written down.
type noted struct {
	kv.Store
	leading kv.Store
	who     string
	book    *book
}

// begin writes a request down, and returns the store that it is for and what to
// do with the answer.
func (n *noted) begin(ctx context.Context, op, name string) (store kv.Store, end func(error), err error) {
	e := n.entry(op, name)
	if err := n.book.pass(ctx, e); err != nil {
		return nil, nil, err
	}
	line := n.book.write(e)
	return n.at(name), func(err error) { n.book.answer(line, err) }, nil
}

func (n *noted) entry(op, name string) entry {
	return entry{who: n.who, op: op, safe: strings.TrimPrefix(name, n.book.name)}
}

func (n *noted) at(name string) kv.Store {
	if name == n.book.name {
		return n.leading
	}
	return n.Store
}

func (n *noted) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	store, end, err := n.begin(ctx, create, name)
	if err != nil {
		return kv.Record{}, err
	}
	got, err := store.Create(ctx, name, rec)
	end(err)
	return got, err
}

func (n *noted) Swap(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
	op := swap
	if old.Signature == next.Signature {
		op = publish
	}
	store, end, err := n.begin(ctx, op, name)
	if err != nil {
		return kv.Record{}, err
	}
	got, err := store.Swap(ctx, name, old, next)
	end(err)
	return got, err
}

func (n *noted) HandOver(ctx context.Context, name string, old kv.Record, place string, heir kv.Record, note string) (kv.Record, error) {
	store, end, err := n.begin(ctx, swap, name)
	if err != nil {
		return kv.Record{}, err
	}
	got, err := store.(kv.HandOver).HandOver(ctx, name, old, place, heir, note)
	end(err)
	return got, err
}

func (n *noted) Refresh(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	store, end, err := n.begin(ctx, refresh, name)
	if err != nil {
		return kv.Record{}, err
	}
	got, err := store.Refresh(ctx, name, rec)
	end(err)
	return got, err
}

// RefreshAll implements [kv.Batch]. Each of the records is written down as a refresh.
func (n *noted) RefreshAll(ctx context.Context, records []kv.Held, tell func(int, kv.Record, error)) {
	ends := make([]func(error), len(records))
	for i, r := range records {
		_, end, err := n.begin(ctx, refresh, r.Name)
		if err != nil {
			for i := range records {
				tell(i, kv.Record{}, err)
			}
			return
		}
		ends[i] = end
	}
	n.Store.(kv.Batch).RefreshAll(ctx, records, func(i int, rec kv.Record, err error) {
		ends[i](err)
		tell(i, rec, err)
	})
}

// Vacate implements [kv.Vacate]. It is a delete.
func (n *noted) Vacate(ctx context.Context, name string, rec kv.Record, place string) (kv.Record, error) {
	store, end, err := n.begin(ctx, remove, name)
	if err != nil {
		return kv.Record{}, err
	}
	heir, err := store.(kv.Vacate).Vacate(ctx, name, rec, place)
	end(err)
	return heir, err
}

func (n *noted) Delete(ctx context.Context, name string, rec kv.Record) error {
	store, end, err := n.begin(ctx, remove, name)
	if err != nil {
		return err
	}
	err = store.Delete(ctx, name, rec)
	end(err)
	return err
}

func (n *noted) Get(ctx context.Context, name string) (kv.Record, error) {
	store, end, err := n.begin(ctx, get, name)
	if err != nil {
		return kv.Record{}, err
	}
	got, err := store.Get(ctx, name)
	end(err)
	return got, err
}

func (n *noted) Watch(ctx context.Context, name string) iter.Seq2[kv.Record, error] {
	return func(yield func(kv.Record, error) bool) {
		n.book.write(n.entry(watch, name))
		for rec, err := range n.at(name).Watch(ctx, name) {
			if ctx.Err() == nil {
				n.book.write(n.entry(told, name))
			}
			if !yield(rec, err) {
				return
			}
		}
	}
}
