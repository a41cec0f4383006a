//go:build unix

package demo

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/kv"
)

// A Stage is where the play takes place.
type Stage struct {
	Store kv.Store // the one that the candidates use
	Name  string   // of the election; nobody else's
	TTL   time.Duration
	Slack time.Duration
	// Command returns the command that runs the candidate called id.
	Command func(id string) *exec.Cmd
	// Tell shows an event as it happens.
	Tell func(history.Event)

	events  chan history.Event
	cast    map[string]*process
	history history.History
}

// ids are the candidates.
func ids() []string { return []string{"anna", "ben", "cleo"} }

// Play runs the play and returns what happened. It leaves no process and no
// record behind, whatever happens; what happened until then is returned with an
// error too.
func (s *Stage) Play(ctx context.Context) (history.History, error) {
	runtime.LockOSThread() // the candidates die with this thread
	defer runtime.UnlockOSThread()
	life, err := s.Store.Lifetime(s.TTL)
	if err != nil {
		return history.History{}, err
	}
	s.history = history.History{About: history.About{
		Title: "elect demo", TTL: s.TTL, Life: life.Max, Slack: s.Slack,
	}}
	s.events = make(chan history.Event)
	s.cast = map[string]*process{}
	err = s.scenes(ctx)
	s.leave()
	return s.history, errors.Join(err, s.clean(ctx))
}

// scenes is the play.
func (s *Stage) scenes(ctx context.Context) error {
	for _, id := range ids() {
		p, err := start(s.Command(id), id, s.events)
		if err != nil {
			return err
		}
		s.cast[id] = p
	}
	first, err := s.leader(ctx, "")
	if err != nil {
		return err
	}
	if err := s.pass(ctx, s.TTL/2); err != nil {
		return err
	}

	s.act(first, history.Killed, syscall.SIGKILL)
	second, err := s.leader(ctx, first)
	if err != nil {
		return err
	}
	if err := s.pass(ctx, s.TTL/2); err != nil {
		return err
	}

	s.act(second, history.Stopped, syscall.SIGSTOP)
	if _, err := s.leader(ctx, second); err != nil {
		return err
	}
	if err := s.pass(ctx, s.TTL/4); err != nil {
		return err
	}

	s.act(second, history.Woken, syscall.SIGCONT)
	if err := s.await(ctx, func(e history.Event) bool { return e.Who == second && e.Kind == history.Ended }); err != nil {
		return err
	}
	return s.pass(ctx, s.TTL/2)
}

// leader waits until somebody other than not is elected.
func (s *Stage) leader(ctx context.Context, not string) (string, error) {
	who := ""
	err := s.await(ctx, func(e history.Event) bool {
		who = e.Who
		return e.Kind == history.Elected && e.Who != not
	})
	return who, err
}

// act does something to a candidate. When a leader cannot lead on, another is
// due: within the longest time that the store keeps a record.
func (s *Stage) act(who string, what history.Kind, sig syscall.Signal) {
	now := boottime.Now()
	s.note(history.Event{At: now, Who: who, Kind: what})
	if fate := fates()[what]; fate != "" {
		s.note(history.Event{At: now, Who: who, Kind: history.Due, Within: s.history.Life, Text: who + " was " + fate})
	}
	s.cast[who].signal(sig)
}

// fates are what ends a leadership.
func fates() map[history.Kind]string {
	return map[history.Kind]string{history.Killed: "killed", history.Stopped: "put to sleep"}
}

func (s *Stage) note(e history.Event) {
	s.history.Events = append(s.history.Events, e)
	s.Tell(e)
}

// errSlow ends the play when what should happen does not.
var errSlow = errors.New("demo: what should follow did not happen in time")

// await notes what happens until cue is given.
func (s *Stage) await(ctx context.Context, cue func(history.Event) bool) error {
	late := time.NewTimer(s.history.Life + s.Slack + 5*time.Second)
	defer late.Stop()
	for {
		select {
		case e := <-s.events:
			s.note(e)
			if cue(e) {
				return nil
			}
		case <-late.C:
			return errSlow
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// pass lets time pass.
func (s *Stage) pass(ctx context.Context, d time.Duration) error {
	over := time.NewTimer(d)
	defer over.Stop()
	for {
		select {
		case e := <-s.events:
			s.note(e)
		case <-over.C:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// leave ends all processes, and notes their last words.
func (s *Stage) leave() {
	var all sync.WaitGroup
	for _, p := range s.cast {
		all.Go(func() { p.end(s.TTL/3 + 2*time.Second) })
	}
	gone := make(chan struct{})
	go func() { all.Wait(); close(gone) }()
	for {
		select {
		case e := <-s.events:
			s.note(e)
		case <-gone:
			return
		}
	}
}

// clean removes the record of a leader that could not, now that nobody is left
// who could mind.
func (s *Stage) clean(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	rec, err := s.Store.Get(ctx, s.Name)
	if err == nil {
		err = s.Store.Delete(ctx, s.Name, rec)
	}
	if err != nil && !errors.Is(err, kv.ErrVacant) && !errors.Is(err, kv.ErrStale) {
		return fmt.Errorf("demo: remove the last record of %q: %w", s.Name, err)
	}
	return nil
}
