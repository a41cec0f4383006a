package chronicle

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/kv"
)

// A Chronicle follows elections of one store until it is closed. It is safe for concurrent
// use.
type Chronicle struct {
	store kv.Store
	since time.Duration
	ctx   context.Context //nolint:containedctx // it ends what Follow and Search start
	end   context.CancelFunc
	work  sync.WaitGroup

	mu        sync.Mutex
	elections map[string]*followed
	seq       uint64        // counts changes
	forgotten uint64        // the seq when an election was last forgotten
	changed   chan struct{} // closed at the next change
	search    Search
	looked    string // the election that somebody looks at
}

// A followed election is one whose safes are watched.
type followed struct {
	Election
	stop   context.CancelFunc
	roster reading
}

// New returns a chronicle of elections in a store, at first of none. Close must be called in
// the end.
func New(store kv.Store) *Chronicle {
	c := &Chronicle{store: store, since: boottime.Now(), elections: map[string]*followed{}, changed: make(chan struct{})}
	c.ctx, c.end = context.WithCancel(context.Background())
	return c
}

// Close ends all that was started, and waits for that.
func (c *Chronicle) Close() {
	c.mu.Lock()
	c.end()  // nothing is started after that
	c.wake() // who waits for a change need not wait any more
	c.mu.Unlock()
	c.work.Wait()
}

// Since returns when the chronicle began.
func (c *Chronicle) Since() time.Duration { return c.since }

// Follow follows elections. One that is followed already stays so. The names are not those of
// safes beside an election's.
func (c *Chronicle) Follow(names ...string) {
	for _, name := range names {
		c.follow(name, false)
	}
}

func (c *Chronicle) follow(name string, listed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.elections[name] != nil || c.ctx.Err() != nil {
		return
	}
	ctx, stop := context.WithCancel(c.ctx)
	f := &followed{Election: Election{Name: name, listed: listed}, stop: stop}
	c.elections[name] = f
	c.tell(f)
	c.work.Go(func() { c.watchLeader(ctx, f) })
	c.work.Go(func() { c.watchHeir(ctx, f) })
}

// forget ends the watches of an election, and leaves it out from now on.
func (c *Chronicle) forget(f *followed) {
	f.stop()
	delete(c.elections, f.Name)
	c.tell(f)
	c.forgotten = c.seq
}

// Mark adds what was done to a candidate of an election that is followed.
func (c *Chronicle) Mark(name string, m Mark) {
	c.update(name, func(e *Election) bool {
		e.Marks = latest(append(e.Marks, m), mostMarks)
		return true
	})
}

// SetCandidates says which candidates an election that is followed has.
func (c *Chronicle) SetCandidates(name string, all []Candidate) {
	c.update(name, func(e *Election) bool { return e.setCandidates(all, "") })
}

// update changes what is known of an election, if it is followed. Change reports whether it has.
func (c *Chronicle) update(name string, change func(*Election) (news bool)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.elections[name]; f != nil && change(&f.Election) {
		c.tell(f)
	}
}

// tell numbers a change, and wakes those who wait for one. It is called with mu held.
func (c *Chronicle) tell(f *followed) {
	c.wake()
	f.seq = c.seq
}

func (c *Chronicle) wake() {
	c.seq++
	close(c.changed)
	c.changed = make(chan struct{})
}

// A Report is what has changed in a chronicle.
type Report struct {
	Elections []Election // by name
	Seq       uint64     // of the newest change in it
	// All says that Elections are all that are followed. Otherwise they are those that have
	// changed, and none was forgotten.
	All    bool
	Search Search
	// Next is closed when there is another change.
	Next <-chan struct{}
}

// Report returns what has changed after seq: with zero, or if an election was forgotten since,
// all that is known. A seq that this chronicle has not reached counts as zero.
func (c *Chronicle) Report(seq uint64) Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := Report{Elections: []Election{}, Seq: c.seq, Next: c.changed, Search: c.search}
	if r.All = seq == 0 || seq > c.seq || seq < c.forgotten; r.All {
		seq = 0
	}
	for _, f := range c.elections {
		if f.seq > seq {
			r.Elections = append(r.Elections, f.copy())
		}
	}
	slices.SortFunc(r.Elections, func(a, b Election) int { return strings.Compare(a.Name, b.Name) })
	return r
}
