//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/electkv/election"
	"github.com/electkv/election/cmd/elect/internal/guard"
	"github.com/electkv/election/cmd/elect/internal/stores"
	"github.com/electkv/election/internal/boottime"
)

// glance is how often a leader looks whether its lease was refreshed, and tells
// the guard.
const glance = 25 * time.Millisecond

var (
	// errExpired is lead's result if the guard stopped COMMAND because it was not
	// told in time that the term goes on.
	errExpired = errors.New("the guard was not told in time that the term goes on")
	// errDone is the cause that ends a Run when COMMAND has ended.
	errDone = errors.New("the command has ended")
)

// A runner runs COMMAND in each of its terms.
type runner struct {
	name      string
	id        string
	ttl       time.Duration
	once      bool
	pass      bool // the store's secrets to COMMAND
	named     bool // the store is not the default
	try       bool
	candidate *election.Candidate
	store     *stores.Store
	parent    *guard.Parent
	spec      guard.Spec
	former    string   // where the default store was before
	bequests  *bequest // what a guard needs beside the record; nil if it is not to release it
	log       *slog.Logger

	ctx    context.Context // ends with an exit, or errDone, as its cause
	cancel context.CancelCauseFunc
	ended  error // how COMMAND ended, as an exit; nil while elect goes on

	mu    sync.Mutex
	guard *guard.Guard // while COMMAND runs
	told  bool         // by SIGINT or SIGTERM to end
}

func newRunner(f *runFlags, name string, log *slog.Logger) *runner {
	r := &runner{name: name, id: f.id, once: f.once, pass: f.passStore, named: f.named(), former: f.former(), log: log}
	r.ctx, r.cancel = context.WithCancelCause(context.Background())
	return r
}

// listen takes care of signals until the function that it returns is called.
func (r *runner) listen() (stop func()) {
	caught := make(chan os.Signal, 16)
	guard.Catch(caught)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // or a log that nobody reads any more would end elect
	done := make(chan struct{})
	var listening sync.WaitGroup
	listening.Go(func() {
		for {
			select {
			case sig := <-caught:
				r.heed(sig.(syscall.Signal))
			case <-done:
				return
			}
		}
	})
	return func() {
		signal.Stop(caught)
		close(done)
		listening.Wait()
	}
}

// heed passes a signal on to COMMAND, or ends the wait for leadership.
func (r *runner) heed(sig syscall.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ends := sig == syscall.SIGINT || sig == syscall.SIGTERM
	killed := exit{status: statusSignal + int(sig)}
	switch {
	case r.guard == nil && (ends || sig == syscall.SIGHUP || sig == syscall.SIGQUIT):
		r.cancel(killed)
	case r.guard == nil:
	case ends && r.told:
		r.guard.Stop()
	case ends:
		r.told = true
		r.guard.Signal(sig)
		r.cancel(killed)
	default:
		r.guard.Signal(sig)
	}
}

// attend makes g the guard that gets the signals. It reports false, and does
// nothing, if a signal has ended everything.
func (r *runner) attend(g *guard.Guard) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if g != nil && r.ctx.Err() != nil {
		return false
	}
	r.guard = g
	return true
}

// lead runs COMMAND for one term. When it returns, COMMAND and all that came of
// it are gone.
func (r *runner) lead(ctx context.Context, term *election.Term) error {
	switch {
	case r.spec.Path == "":
		return r.stand(ctx, term)
	case r.ctx.Err() != nil: // a signal came first
		return nil
	}
	w := &watchman{term: term, clock: boottime.NewConverter(), until: term.Until()}
	spec := r.spec
	spec.Env = r.environ(term)
	spec.Until = w.clock.Convert(w.until)
	spec.Foreground = guard.HasTerminal()
	spec.Release = r.bequests.of(r.name, term.Record())
	g, err := r.start(spec)
	if err != nil {
		r.finish(exit{statusFailure, err})
		return nil
	}
	w.guard = g
	if !r.attend(g) {
		g.Stop()
	}
	w.watch()
	r.attend(nil)
	if spec.Foreground {
		if err := guard.TakeTerminal(); err != nil {
			r.log.Warn("cannot get back to the foreground of the terminal", "error", err)
		}
	}
	end := g.End()
	switch end.OnLost {
	case "":
	case guard.Fine:
		r.log.Info("the command of --on-lost has ended", "how", end.OnLost)
	default:
		r.log.Warn("the command of --on-lost has failed: what COMMAND started elsewhere may run on", "how", end.OnLost)
	}
	if end.Err != nil && w.lost == nil {
		w.lost = term.Err() // all were frozen, and the guard was killed as overdue before the watchman looked
	}
	return r.review(end, w.lost)
}

// start starts the guard, and gives it the files that keep the record alive: if
// the store sees a holder's death at once, COMMAND's must come first.
func (r *runner) start(spec guard.Spec) (*guard.Guard, error) {
	holds := r.store.Holds()
	defer func() {
		for _, f := range holds {
			f.Close()
		}
	}()
	return r.parent.Start(spec, holds...)
}

// environ is COMMAND's environment. What it says of another election, which elect
// runs under or somebody exported, is replaced: a variable that is there twice has the
// value that its reader likes.
func (r *runner) environ(term *election.Term) []string {
	env := os.Environ()
	if r.pass {
		env = without(env, []string{storeVariable})
	} else {
		env = withoutSecrets(env, r.store.Address, r.named)
	}
	return replaced(env,
		"ELECTION_NAME="+r.name,
		"ELECTION_ID="+r.id,
		"ELECTION_TOKEN="+strconv.FormatUint(term.Token(), 10),
		"ELECTION_TTL="+r.ttl.String(),
	)
}

// replaced returns an environment with our variables in the place of others of their
// names.
func replaced(env []string, ours ...string) []string {
	return append(slices.DeleteFunc(env, func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.ContainsFunc(ours, func(own string) bool { return strings.HasPrefix(own, name+"=") })
	}), ours...)
}

// review says what follows from COMMAND's end.
func (r *runner) review(end guard.End, lost error) error {
	over := lost != nil && !errors.As(end.Err, new(syscall.Errno)) // a guard that was late, and was killed
	switch told := r.isTold(); {
	case end.Err != nil && !end.Started && !over:
		r.finish(exit{statusNotExec, fmt.Errorf("%s: cannot be executed: %w", r.spec.Path, end.Err)})
	case errors.Is(lost, election.ErrResigned) && r.once && !told && end.Started && end.Err == nil:
		r.log.Info("COMMAND was stopped: the term was given up", "status", statusOf(end.Status))
		r.finish(exit{status: statusOf(end.Status)})
	case lost != nil && r.once && !told:
		r.finish(exit{statusFailure, fmt.Errorf("%w; COMMAND was stopped", lost)})
	case end.Err != nil && lost != nil && !told && !end.Started:
		r.log.Warn("COMMAND was not started: the term was over", "error", end.Err)
	case end.Err != nil && lost != nil && !told:
		r.log.Warn("COMMAND was killed: the term was over", "error", end.Err)
	case end.Err != nil:
		r.finish(exit{statusFailure, end.Err})
	case !end.Started:
		r.log.Warn("COMMAND was not started: the term did not go on in time")
		return errExpired
	case lost != nil && !told:
		r.log.Info("COMMAND was stopped", "status", statusOf(end.Status))
	case end.Expired && !told:
		r.log.Info("COMMAND was stopped", "status", statusOf(end.Status))
		return errExpired
	case end.Expired:
		r.log.Warn("COMMAND was stopped before it had ended: the term did not go on in time", "status", statusOf(end.Status))
		r.finish(exit{status: statusOf(end.Status)})
	default:
		r.log.Info("COMMAND has ended", "status", statusOf(end.Status))
		r.finish(exit{status: statusOf(end.Status)})
	}
	return nil
}

func (r *runner) isTold() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.told
}

// finish makes e the end of it all.
func (r *runner) finish(e exit) {
	r.ended = e
	r.cancel(errDone)
}

// statusOf is the exit status by which shells report how a process ended.
func statusOf(ws syscall.WaitStatus) int {
	if ws.Signaled() {
		return statusSignal + int(ws.Signal())
	}
	return ws.ExitStatus()
}

// A watchman tells the guard of one term how long to trust.
type watchman struct {
	term  *election.Term
	guard *guard.Guard
	clock *boottime.Converter
	until time.Time

	lost error // why the term ended before COMMAND did
}

// watch returns when COMMAND and all that came of it are gone.
func (w *watchman) watch() {
	ended := w.term.Context().Done()
	tick := time.NewTicker(glance)
	defer tick.Stop()
	for {
		select {
		case <-w.guard.Done():
			return
		case <-ended:
			ended = nil // elect was told to end, or the term did
		case <-tick.C:
		}
		if w.lost != nil {
			continue
		}
		if w.lost = w.term.Err(); w.lost != nil {
			w.guard.Stop()
			continue
		}
		if until := w.term.Until(); !until.Equal(w.until) {
			w.until = until
			w.guard.Extend(w.clock.Convert(until))
		}
	}
}
