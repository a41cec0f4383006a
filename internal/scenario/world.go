package scenario

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/internal/seam"
	"github.com/electkv/election/kv"
)

// A world is where a script is played, in fake time: one election, the store, and
// a process for each candidate that is alive.
type world struct {
	t      testing.TB
	engine seam.Engine
	script *script
	store  *ledger
	trace  *trace
	last   time.Time      // when something was done to it last
	asking sync.WaitGroup // what commands have asked for, and was not answered yet
	ctx    context.Context
	end    context.CancelFunc

	mu    sync.Mutex
	cast  map[string]*process // the present ones, or the last
	lives []*process          // all that there ever were
	terms []*reign
}

// A reign is a term that a candidate was told of.
type reign struct {
	p     *process
	term  *election.Term
	began time.Time
	ended time.Time // zero while it has not
}

const scene = "billing"

// play plays a script and returns its trace. It fails the test if anything does
// not hold that holds in every election.
func play(t testing.TB, engine seam.Engine, s *script) string {
	w := newWorld(t, engine, s)
	for _, st := range s.steps {
		if err := w.step(st); err != nil {
			t.Errorf("line %d: %s: %v", st.line, st.text, err)
			break
		}
	}
	w.trace.add(turnCommand, "at the end %s; %s", w.state(), w.shares())
	w.checkChanges()
	w.checkRanks()
	w.close()
	return w.trace.String()
}

func newWorld(t testing.TB, engine seam.Engine, s *script) *world {
	w := &world{
		t:      t,
		engine: engine,
		script: s,
		trace:  &trace{began: time.Now()},
		cast:   map[string]*process{},
	}
	w.store = &ledger{Store: memkv.New(), t: t, from: map[uint64]uint64{}, freed: w.frees}
	w.ctx, w.end = context.WithCancel(t.Context())
	return w
}

// step plays one command, and what follows from it at that instant.
func (w *world) step(st step) error {
	if st.verb.do == nil {
		return nil
	}
	if !st.verb.quiet {
		w.trace.add(turnCommand, "> %s", st.text)
		w.last = time.Now()
	}
	if err := st.verb.do(w, st.args); err != nil {
		return err
	}
	synctest.Wait()
	w.check()
	return nil
}

// state says who leads and who is next, as observers see it.
func (w *world) state() string {
	says := func(who string, err, none error) string {
		switch {
		case errors.Is(err, none):
			return "nobody"
		case err != nil:
			w.t.Errorf("whoever looks is told: %v", err)
		}
		return who
	}
	leader, err := election.Current(w.t.Context(), w.store, scene)
	heir, herr := election.CurrentHeir(w.t.Context(), w.store, scene)
	return says(leader.ID, err, election.ErrNoLeader) + " leads, " + says(heir.ID, herr, election.ErrNoHeir) + " is next"
}

// shares says for how long each candidate has led. A paused candidate counts as leader only
// until the next one leads, whatever it believes.
func (w *world) shares() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	led := map[string]time.Duration{}
	rest, next := time.Since(w.trace.began), time.Now()
	for _, r := range slices.Backward(w.terms) {
		end := next
		if !r.ended.IsZero() && r.ended.Before(next) {
			end = r.ended
		}
		led[r.p.id] += end.Sub(r.began)
		rest -= end.Sub(r.began)
		next = r.began
	}
	parts := []string{}
	for _, id := range w.script.cast {
		if led[id] > 0 {
			parts = append(parts, fmt.Sprintf("%s has led for %.1fs", id, led[id].Seconds()))
		}
	}
	return strings.Join(append(parts, fmt.Sprintf("nobody for %.1fs", rest.Seconds())), ", ")
}

// close ends everything, and waits until nothing of it is left: no goroutine, and
// no record that is still refreshed.
func (w *world) close() {
	w.end()
	w.mu.Lock()
	all := slices.Clone(w.lives)
	w.mu.Unlock()
	for _, p := range all {
		p.mute()
		if !p.is(dead) {
			p.goOn()
			p.reach(true)
		}
	}
	for _, p := range all {
		p.cancel()
	}
	for _, p := range all {
		<-p.done
	}
	w.asking.Wait()
	time.Sleep(2 * w.script.ttl)
	for _, safe := range []string{scene, scene + ":heir", scene + ":request"} {
		_, err := w.store.Get(w.t.Context(), safe)
		if !errors.Is(err, kv.ErrVacant) {
			w.t.Errorf("somebody keeps %s when all have gone (%v)", safe, err)
		}
	}
}

// process returns a candidate's present process, or the error that it has none.
func (w *world) process(id string) (*process, error) {
	w.mu.Lock()
	p := w.cast[id]
	w.mu.Unlock()
	if p.is(dead) {
		return nil, fmt.Errorf("%s does not run: restart it first", id)
	}
	return p, nil
}

// processes returns the present process of each candidate that has come so far.
func (w *world) processes() []*process {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := []*process{}
	for _, id := range w.script.cast {
		if p := w.cast[id]; p != nil {
			all = append(all, p)
		}
	}
	return all
}

// begins notes a term, and compares it with those before.
func (w *world) begins(p *process, term *election.Term) {
	w.mu.Lock()
	before := slices.Clone(w.terms)
	w.terms = append(w.terms, &reign{p: p, term: term, began: time.Now()})
	nth := len(w.terms)
	w.mu.Unlock()
	if term.Err() != nil {
		return // it was paused for so long before it could be told: no term at all
	}
	for _, old := range before {
		if old.p.is(dead) || old.p.is(paused) {
			continue // it does nothing; it is checked when it wakes up
		}
		if old.term.Err() == nil {
			w.t.Errorf("two leaders: %s begins term %d while %s's term %d is alive", p.id, term.Token(), old.p.id, old.term.Token())
		}
		if term.Token() <= old.term.Token() {
			w.t.Errorf("%s's token %d is not larger than %s's %d", p.id, term.Token(), old.p.id, old.term.Token())
		}
	}
	how := "the safe was vacant"
	if from := w.store.handed(term.Token()); from != 0 {
		how = "handed over"
		for _, old := range before {
			if old.term.Token() == from {
				how += " by " + old.p.id
			}
		}
	}
	w.trace.add(turnLeads, "%s leads (term %d): %s", p.id, nth, how)
}

// ends notes that a term has ended.
func (w *world) ends(term *election.Term) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.terms {
		if r.term == term {
			r.ended = time.Now()
		}
	}
}

// frees notes that a leader has given up the safe, in which it had this token.
// Invariant 6: released means stopped.
func (w *world) frees(token uint64) {
	w.mu.Lock()
	all := slices.Clone(w.terms)
	w.mu.Unlock()
	for _, r := range all {
		if r.term.Token() == token && r.p.works(r.term) {
			w.t.Errorf("%s gives the safe up before its work has returned", r.p.id)
		}
	}
}

// check asks every candidate that ever led whether it believes that it leads.
func (w *world) check() {
	w.mu.Lock()
	all := slices.Clone(w.terms)
	w.mu.Unlock()
	alive := []string{}
	for _, r := range all {
		if !r.p.is(dead) && !r.p.is(paused) && r.term.Err() == nil {
			alive = append(alive, r.p.id)
		}
	}
	if len(alive) > 1 {
		w.t.Errorf("leaders at one instant: %q", alive)
	}
}

// checkChanges: without faults or wishes, the leader changes at most once for each
// candidate that joins.
func (w *world) checkChanges() {
	for _, st := range w.script.steps {
		if !st.verb.calm || st.args.max != 0 {
			return
		}
	}
	if len(w.terms) > len(w.script.cast) {
		w.t.Errorf("the leader has changed %d times, where nothing was wrong and %d joined", len(w.terms), len(w.script.cast))
	}
}

// checkRanks: when all has been quiet for a while, a candidate of the highest rank
// leads, unless those have troubled the others before.
func (w *world) checkRanks() {
	stability := w.script.stability
	if stability == 0 {
		stability = 3 * w.script.ttl
	}
	if w.script.order != "rank" || time.Since(w.last) < stability+w.script.ttl {
		return
	}
	top := []*process{}
	for _, p := range w.processes() {
		if p.is(dead) || p.is(cutOff) || p.is(paused) || p.is(ill) {
			continue
		}
		if len(top) > 0 && p.opts.Rank > top[0].opts.Rank {
			top = nil
		}
		if len(top) == 0 || p.opts.Rank == top[0].opts.Rank {
			top = append(top, p)
		}
	}
	if len(top) == 0 || slices.ContainsFunc(top, func(p *process) bool { return p.is(troubled) || p.opts.MaxTerm > 0 }) {
		return
	}
	leader, err := election.Current(w.t.Context(), w.store, scene)
	if !slices.ContainsFunc(top, func(p *process) bool { return p.id == leader.ID }) {
		w.t.Errorf("nothing was done for %v, and %q leads (%v), not the highest: %q", time.Since(w.last), leader.ID, err, top[0].id)
	}
}

// spoken returns an error as a trace shows it.
func spoken(err error) string {
	return strings.ReplaceAll(err.Error(), "election: ", "")
}
