package linear

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/electkv/election/internal/views"
	"github.com/electkv/election/kv"
)

// A Recorder notes what clients ask of stores, on one clock. Any number of
// goroutines may use it at the same time. Use [NewRecorder] to make one.
type Recorder struct {
	start time.Time

	mu      sync.Mutex
	history []Operation
}

// NewRecorder returns a recorder whose clock starts now.
func NewRecorder() *Recorder { return &Recorder{start: time.Now()} }

// Client returns store as the client uses it whose number is given: all its
// operations are noted, but for Watch and Lifetime, and those of a line. A client that does several
// things at once is as good as several clients. Records that are refreshed together are so many
// refreshes.
func (r *Recorder) Client(client int, store kv.Store) kv.Store {
	return views.Over(store, &recorded{Store: store, recorder: r, client: client})
}

// Dies notes that a client is about to be killed, with all that keeps its
// records alive. Call it before the deed. The client's number is not used again.
func (r *Recorder) Dies(client int) {
	at := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history = append(r.history, Operation{Client: client, Kind: Death, Call: at, Return: at})
}

// History returns what was noted so far. The outcome of an operation that has
// not returned is unknown.
func (r *Recorder) History() []Operation {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.history)
}

func (r *Recorder) now() time.Duration { return time.Since(r.start) }

// note runs an operation between two looks at the clock.
func (r *Recorder) note(op Operation, run func() (kv.Record, error)) (kv.Record, error) {
	i := r.begin(op)
	got, err := run()
	r.end(i, got, err)
	return got, err
}

// begin puts an operation into the history, where it is from its call on, whether it returns
// or not. It returns its number there.
func (r *Recorder) begin(op Operation) int {
	op.Outcome = Unknown
	r.mu.Lock()
	defer r.mu.Unlock()
	op.Call = r.now()
	r.history = append(r.history, op)
	return len(r.history) - 1
}

// end notes what has become of an operation.
func (r *Recorder) end(i int, got kv.Record, err error) {
	at := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	op := &r.history[i]
	op.Return, op.Outcome = at, outcome(err)
	switch {
	case err != nil:
		op.Error = err.Error()
	case op.Kind != Delete:
		op.Got = copied(got)
	}
}

func copied(rec kv.Record) *Record {
	r := Record(rec)
	return &r
}

// recorded is a store in the hands of one client. It has parts that the store may not have,
// and is then not asked for them.
type recorded struct {
	kv.Store
	recorder *Recorder
	client   int
}

func (c *recorded) note(kind Kind, name string, given, next *Record, run func() (kv.Record, error)) (kv.Record, error) {
	return c.recorder.note(Operation{Client: c.client, Kind: kind, Name: name, Given: given, Next: next}, run)
}

// Create implements [kv.Store].
func (c *recorded) Create(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	return c.note(Create, name, copied(rec), nil, func() (kv.Record, error) {
		return c.Store.Create(ctx, name, rec)
	})
}

// Swap implements [kv.Store].
func (c *recorded) Swap(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
	return c.note(Swap, name, copied(old), copied(next), func() (kv.Record, error) {
		return c.Store.Swap(ctx, name, old, next)
	})
}

// Vacate implements [kv.Vacate]. It is a delete that may be refused for what
// another safe holds.
func (c *recorded) Vacate(ctx context.Context, name string, rec kv.Record, place string) (kv.Record, error) {
	op := Operation{Client: c.client, Kind: Delete, Name: name, Given: copied(rec), Place: place}
	return c.recorder.note(op, func() (kv.Record, error) { return c.Store.(kv.Vacate).Vacate(ctx, name, rec, place) })
}

// HandOver implements [kv.HandOver].
func (c *recorded) HandOver(ctx context.Context, name string, old kv.Record, place string, heir kv.Record, note string) (kv.Record, error) {
	next := heir
	next.Note = note
	op := Operation{
		Client: c.client, Kind: HandOver, Name: name, Given: copied(old), Next: copied(next), Place: place, Heir: copied(heir),
	}
	return c.recorder.note(op, func() (kv.Record, error) {
		return c.Store.(kv.HandOver).HandOver(ctx, name, old, place, heir, note)
	})
}

// Refresh implements [kv.Store].
func (c *recorded) Refresh(ctx context.Context, name string, rec kv.Record) (kv.Record, error) {
	return c.note(Refresh, name, copied(rec), nil, func() (kv.Record, error) {
		return c.Store.Refresh(ctx, name, rec)
	})
}

// RefreshAll implements [kv.Batch].
func (c *recorded) RefreshAll(ctx context.Context, records []kv.Held, tell func(int, kv.Record, error)) {
	ops := make([]int, len(records))
	for i, r := range records {
		ops[i] = c.recorder.begin(Operation{Client: c.client, Kind: Refresh, Name: r.Name, Given: copied(r.Record), Share: r.Share})
	}
	c.Store.(kv.Batch).RefreshAll(ctx, records, func(i int, got kv.Record, err error) {
		c.recorder.end(ops[i], got, err)
		tell(i, got, err)
	})
}

// Delete implements [kv.Store].
func (c *recorded) Delete(ctx context.Context, name string, rec kv.Record) error {
	_, err := c.note(Delete, name, copied(rec), nil, func() (kv.Record, error) {
		return kv.Record{}, c.Store.Delete(ctx, name, rec)
	})
	return err
}

// Get implements [kv.Store].
func (c *recorded) Get(ctx context.Context, name string) (kv.Record, error) {
	return c.note(Get, name, nil, nil, func() (kv.Record, error) {
		return c.Store.Get(ctx, name)
	})
}
