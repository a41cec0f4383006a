//go:build unix

package succession_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
	"github.com/electkv/election/internal/views"
	"github.com/electkv/election/internal/witness"
	"github.com/electkv/election/kv"
)

// patience is how long something is waited for that no bound is promised for.
const patience = 60 * time.Second

// slack is how much later than promised things may happen on a busy machine.
const slack = 4 * time.Second

// A fleet is the candidates of one election. Its methods fail the test if they
// cannot do what they say.
type fleet struct {
	t    testing.TB
	name string // of the election
	open func() link
	eye  kv.Store // of the test itself
	book *book
	past witness.Chronicle

	mu       sync.Mutex
	members  []*member     // in the order in which they came; who left is among them
	changed  chan struct{} // closed when anything has
	troubles []string
	between  bool          // a leader has stopped its work, and nobody works since
	stir     chan struct{} // holds a value when that may have become so
}

// newFleet returns a fleet without members.
func newFleet(t testing.TB, open func() link) *fleet {
	name := "succession-" + strings.ToLower(rand.Text()[:10])
	return &fleet{t: t, name: name, open: open, eye: open().store, book: newBook(name), changed: make(chan struct{}), stir: make(chan struct{}, 1)}
}

// enter has a candidate campaign by a link of its own, until the test ends at the
// latest.
func (f *fleet) enter(id string, o election.Options) *member {
	f.t.Helper()
	return f.enterBy(f.open(), id, o)
}

// enterBy is enter by a link that others may use too.
func (f *fleet) enterBy(l link, id string, o election.Options) *member {
	f.t.Helper()
	m := &member{fleet: f, Witness: witness.New(id, f.note), id: id, link: l, stopped: make(chan struct{}), role: election.RoleIdle}
	observed := m.Observe(l.store, f.name)
	o.ID, o.OnRole = id, m.becomes
	var err error
	m.candidate, err = election.New(f.book.open(id, observed, views.Over(observed, watched{observed, m})), f.name, &o)
	require.NoError(f.t, err)
	f.t.Cleanup(f.stop) // before the client is closed
	ctx, stop := context.WithCancelCause(context.Background())
	m.stop = func() { stop(errStopped) }
	f.mu.Lock()
	f.members = append(f.members, m)
	f.mu.Unlock()
	go m.run(ctx)
	return m
}

// leave has members stop, and waits until they have.
func (f *fleet) leave(members ...*member) {
	f.t.Helper()
	for _, m := range members {
		m.stop()
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	for _, m := range members {
		select {
		case <-m.stopped:
		case <-late.C:
			require.FailNow(f.t, "a candidate does not stop", m.id)
		}
	}
}

// stop has all members stop.
func (f *fleet) stop() {
	f.t.Helper()
	f.leave(f.present()...)
}

// present returns the members that have not left.
func (f *fleet) present() []*member {
	f.mu.Lock()
	defer f.mu.Unlock()
	here := []*member{}
	for _, m := range f.members {
		if !m.left {
			here = append(here, m)
		}
	}
	return here
}

// note takes an event into the history.
func (f *fleet) note(e history.Event) {
	f.past.Note(e)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changes()
}

// changes wakes who waits for something. It is called with f.mu locked.
func (f *fleet) changes() {
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fleet) blame(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.troubles = append(f.troubles, fmt.Sprintf(format, args...))
	f.changes()
}

// await waits until something is the case, at most for so long. The condition is
// called with f.mu locked.
func (f *fleet) await(what string, within time.Duration, is func() bool) {
	f.t.Helper()
	if !f.awaits(within, is) {
		require.FailNow(f.t, "waited in vain", "%s, within %v\n%s", what, within, f.state())
	}
}

// state tells what each member is.
func (f *fleet) state() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var b strings.Builder
	for _, m := range f.members {
		if len(f.members) > 20 && m.role == election.RoleCandidate {
			continue
		}
		fmt.Fprintf(&b, "%s: %s", m.id, m.role)
		if m.term != nil {
			fmt.Fprintf(&b, ", token %d", m.term.Token())
		}
		if m.left {
			b.WriteString(", left")
		}
		b.WriteString("\n")
	}
	for _, trouble := range f.troubles {
		b.WriteString(trouble + "\n")
	}
	return b.String()
}

// leads waits until somebody leads under a larger token than that, and returns
// the leader and its term.
func (f *fleet) leads(after uint64, within time.Duration) (leader *member, term *election.Term) {
	f.t.Helper()
	f.await(fmt.Sprintf("a leader after token %d", after), within, func() bool {
		for _, m := range f.members {
			if m.term != nil && m.term.Token() > after {
				leader, term = m, m.term
				return true
			}
		}
		return false
	})
	return leader, term
}

// isHeir waits until one of some members, or of all if none is given, is heir: the
// store says so, and the member too.
func (f *fleet) isHeir(within time.Duration, of ...*member) (heir *member) {
	f.t.Helper()
	if len(of) == 0 {
		of = f.present()
	}
	ctx, cancel := context.WithTimeout(f.t.Context(), within)
	defer cancel()
	for rec, err := range f.eye.Watch(ctx, f.name+heirs) {
		switch {
		case err == nil:
		case errors.Is(err, kv.ErrVacant):
			continue
		default:
			require.NoError(f.t, err, "no heir within %v\n%s", within, f.state())
		}
		for _, m := range of {
			if strings.HasPrefix(rec.Signature, m.id+"/") && f.awaits(time.Second, func() bool { return m.role == election.RoleHeir && m.term == nil }) {
				return m
			}
		}
	}
	panic("a watch ends with an error")
}

// terms returns who led, in order, and under which tokens.
func (f *fleet) terms() (who []string, tokens []uint64) {
	for _, s := range f.history().Stretches() {
		who, tokens = append(who, s.Who), append(tokens, s.Token)
	}
	return who, tokens
}

func (f *fleet) history() history.History { return f.past.History(history.About{}) }

// judge stops all members, and fails the test if a promise was broken.
func (f *fleet) judge(ttl time.Duration) {
	f.t.Helper()
	f.stop()
	h := f.history()
	h.About = history.About{Title: f.t.Name(), TTL: ttl, Margin: ttl / 10}
	shown := oracle.Judge(h, oracle.OneLeader, oracle.TokensGrow, oracle.DeadlineFromSend, oracle.WorkWithinTerm, oracle.CallbacksPaired)
	findings := append(shown, oracle.Judge(h, oracle.NoResurrection)...)
	if !shown.AllKept() || len(findings.Broken()) > 0 || len(f.troubles) > 0 {
		require.FailNow(f.t, "a promise was broken", "%s\n%s\n%s", findings, strings.Join(f.troubles, "\n"), history.Timeline(h, 120))
	}
	f.t.Logf("\n%s%s", findings, history.Timeline(h, 100))
}

// leadsOne waits until one of some members leads.
func (f *fleet) leadsOne(within time.Duration, of []*member) {
	f.t.Helper()
	f.await("one of them leads", within, func() bool {
		return slices.ContainsFunc(of, func(m *member) bool { return m.term != nil })
	})
}

// awaits waits until something is the case, and reports whether it came to that
// in time. The condition is called with f.mu locked.
func (f *fleet) awaits(within time.Duration, is func() bool) bool {
	late := time.NewTimer(within)
	defer late.Stop()
	for {
		f.mu.Lock()
		ok, changed := is(), f.changed
		f.mu.Unlock()
		if ok {
			return true
		}
		select {
		case <-changed:
		case <-late.C:
			return false
		}
	}
}
