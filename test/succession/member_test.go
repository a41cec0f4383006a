//go:build unix

package succession_test

import (
	"context"
	"errors"
	"time"

	"github.com/electkv/election"
	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/witness"
	"github.com/electkv/election/kv"
)

// pace is how often a leader does a step of its work, and drain how long it needs
// to stop.
const (
	pace  = 10 * time.Millisecond
	drain = 50 * time.Millisecond
)

// A member is a candidate of a fleet, which campaigns and leads until it is told
// to stop, and writes down what it believes before it acts on it.
type member struct {
	*fleet
	*witness.Witness
	id        string
	link      link
	candidate *election.Candidate
	stop      context.CancelFunc
	stopped   chan struct{} // closed when it has returned

	// Guarded by fleet.mu.
	role  election.Role
	since time.Duration  // when it came to that
	term  *election.Term // while it works
	began time.Duration  // when it began to
	left  bool
}

var errStopped = errors.New("told to stop")

// run campaigns and leads until ctx ends.
func (m *member) run(ctx context.Context) {
	defer close(m.stopped)
	m.Note(history.Event{Kind: history.Ready})
	if err := m.candidate.Run(ctx, m.lead); !errors.Is(err, errStopped) {
		m.blame("%s returned %v", m.id, err)
	}
	m.mu.Lock()
	m.left = true
	m.mu.Unlock()
	m.Note(history.Event{Kind: history.Left})
}

// lead works in small steps, and asks before each of them whether it may.
func (m *member) lead(ctx context.Context, term *election.Term) error {
	if !m.Begin(ctx, term) {
		return nil
	}
	m.works(term) // by now the history has the term
	m.Note(history.Event{Kind: history.Started, Token: term.Token()})
	m.Work(ctx, pace)
	m.End(context.Cause(ctx).Error())
	time.Sleep(drain)
	m.Note(history.Event{Kind: history.Finished, Token: term.Token()})
	m.works(nil)
	return nil
}

// works notes in which term the member is at work.
func (m *member) works(term *election.Term) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.term, m.began, m.between = term, boottime.Now(), term == nil
	select {
	case m.stir <- struct{}{}:
	default:
	}
}

// becomes is told of each change of role.
func (m *member) becomes(r election.Role) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.role, m.since = r, boottime.Now()
	m.changes()
}

// A watched is a store that blames a member for giving the leaders' safe up while
// it is at work.
type watched struct {
	kv.Store
	m *member
}

func (w watched) Swap(ctx context.Context, name string, old, next kv.Record) (kv.Record, error) {
	if old.Signature != next.Signature {
		w.gives(old)
	}
	return w.Store.Swap(ctx, name, old, next)
}

func (w watched) HandOver(ctx context.Context, name string, old kv.Record, place string, heir kv.Record, note string) (kv.Record, error) {
	w.gives(old)
	return w.Store.(kv.HandOver).HandOver(ctx, name, old, place, heir, note)
}

func (w watched) Delete(ctx context.Context, name string, rec kv.Record) error {
	w.gives(rec)
	return w.Store.Delete(ctx, name, rec)
}

func (w watched) Vacate(ctx context.Context, name string, rec kv.Record, place string) (kv.Record, error) {
	w.gives(rec)
	return w.Store.(kv.Vacate).Vacate(ctx, name, rec, place)
}

func (w watched) gives(rec kv.Record) {
	w.m.mu.Lock()
	busy := w.m.term != nil && w.m.term.Token() == rec.Token
	w.m.mu.Unlock()
	if busy {
		w.m.blame("%s gave up the safe under token %d while it was at work", w.m.id, rec.Token)
	}
}
