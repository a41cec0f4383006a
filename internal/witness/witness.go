// Package witness has candidates tell what they believe, and a test hear it.
//
// A [Witness] writes down what one candidate believes before the candidate acts on it, in the
// events of package history. Most candidates are processes of their own: [Start] starts one. It
// tells its events ([Tell]) on its standard output. A [Chronicle] takes down what all of them
// tell, and what is done to them.
package witness

import (
	"context"
	"sync"
	"time"

	"github.com/electkv/election"
	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/kv"
)

// A Witness writes down what one candidate believes. Several goroutines may use it at the same time.
type Witness struct {
	who  string
	note func(history.Event)

	mu    sync.Mutex
	term  *election.Term // while it leads
	until time.Time      // as written down last
	clock *boottime.Converter
}

// New returns the witness of the candidate who, which gives its events to note. Note returns when
// the event is out of the candidate's hands. It may be called by several goroutines at once.
func New(who string, note func(history.Event)) *Witness { return &Witness{who: who, note: note} }

// Note writes down an event of the candidate.
func (w *Witness) Note(e history.Event) {
	e.Who = w.who
	w.note(e)
}

// Observe returns a view of store that notes what the candidate asks about the election, as
// [history.ObserveOnly] does. A refresh may extend the term: each extension is written down
// before the next refresh is sent.
func (w *Witness) Observe(store kv.Store, election string) kv.Store {
	return history.ObserveOnly(store, election, func(e history.Event) {
		if e.Kind == history.Sent && e.Op == history.OpRefresh {
			w.Confess()
		}
		w.Note(e)
	})
}

// Begin writes down that the candidate leads. If ctx has ended it reports false, and writes down
// nothing: the term is over before the work has begun.
func (w *Witness) Begin(ctx context.Context, term *election.Term) bool {
	until := term.Until() // a refresh may follow at once, and is another event
	asked := boottime.Now()
	if ctx.Err() != nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.term, w.until, w.clock = term, until, boottime.NewConverter()
	w.Note(history.Event{Kind: history.Elected, At: asked, Token: term.Token(), Until: w.clock.Convert(until)})
	return true
}

// MayWork reports whether the candidate may do a step of its work, and writes down that it may.
// Ctx is that of the work, which has begun.
func (w *Witness) MayWork(ctx context.Context) bool {
	asked := boottime.Now()
	if ctx.Err() != nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.confess()
	w.Note(history.Event{Kind: history.Worked, At: asked, Token: w.term.Token()})
	return true
}

// Confess writes down until when the term is trusted, if the candidate leads and that has changed.
func (w *Witness) Confess() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.term != nil {
		w.confess()
	}
}

func (w *Witness) confess() {
	if until := w.term.Until(); !until.Equal(w.until) {
		w.until = until
		w.Note(history.Event{Kind: history.Extended, Token: w.term.Token(), Until: w.clock.Convert(until)})
	}
}

// End writes down that the candidate knows that its term is over, and why.
func (w *Witness) End(cause string) { w.EndFor(cause, "") }

// EndFor is End for a leader that can tell which of the reasons it is.
func (w *Witness) EndFor(cause string, reason election.Reason) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.confess() // work that hung may not have done so
	w.Note(history.Event{Kind: history.Ended, Token: w.term.Token(), Text: cause, Value: string(reason)})
	w.term = nil
}

// Work does a small step of work at each pace, until the candidate may not.
func (w *Witness) Work(ctx context.Context, pace time.Duration) {
	step := time.NewTicker(pace)
	defer step.Stop()
	for w.MayWork(ctx) {
		select {
		case <-ctx.Done():
		case <-step.C:
		}
	}
}

// Lead is what a leader does that does nothing but such work, for [election.Candidate.Run]. It
// returns nil when ctx ends.
func (w *Witness) Lead(ctx context.Context, term *election.Term) error {
	if w.Begin(ctx, term) {
		w.Work(ctx, 20*time.Millisecond)
		w.End(context.Cause(ctx).Error())
	}
	return nil
}
