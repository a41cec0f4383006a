//go:build unix

package demo

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/electkv/election"
	"github.com/electkv/election/cmd/elect/internal/reserved"
	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/witness"
	"github.com/electkv/election/kv"
)

// A Stage is where a play takes place.
type Stage struct {
	Play  Play
	Store kv.Store // the one that the candidates use
	Name  string   // of the election; nobody else's
	TTL   time.Duration
	Slack time.Duration
	// Command returns the command that runs a candidate.
	Command func(Part) *exec.Cmd
	// Tell shows an event as it happens.
	Tell func(history.Event)
	// Curtain is called when all that is to be seen has happened, before the candidates end.
	Curtain func()

	troupe
	roles   map[string]string // of those who told, as they said last
	history history.History
}

// Perform plays the play and returns what happened. It leaves no process and no
// record behind, whatever happens; what happened until then is returned with an
// error too.
func (s *Stage) Perform(ctx context.Context) (history.History, error) {
	runtime.LockOSThread() // the candidates die with this thread
	defer runtime.UnlockOSThread()
	life, err := s.Store.Lifetime(s.TTL)
	if err != nil {
		return history.History{}, err
	}
	s.history = history.History{About: history.About{
		Title: "elect demo", TTL: s.TTL, Life: life.Max, Slack: s.Slack,
	}}
	s.troupe, s.roles = newTroupe(s.note), map[string]string{}
	p := s.Play.Parts[0] // longer than anything is promised within
	s.patience = life.Max + 2*p.Stability + p.MaxTerm + s.Slack + 5*time.Second
	stop := func() {}
	if s.Play.Ordered() {
		stop = s.observe(ctx)
	}
	err = s.Play.script(ctx, s)
	if err == nil && s.Play.Ordered() {
		err = s.until(ctx, s.watched)
	}
	s.Curtain()
	s.leave(stop)
	return s.history, errors.Join(err, s.clean(ctx))
}

// stand starts candidates.
func (s *Stage) stand(parts ...Part) error {
	for _, part := range parts {
		if err := s.enter(part.ID, s.Command(part)); err != nil {
			return err
		}
	}
	return nil
}

// observe notes what the safe holds, as a watch shows it, until stop is called.
// The events must be read until stop has returned.
func (s *Stage) observe(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() {
		for leader, err := range election.Watch(ctx, s.Store, s.Name) {
			if err == nil || errors.Is(err, election.ErrNoLeader) { // else there is trouble with the store
				s.events <- history.Event{At: boottime.Now(), Kind: history.Holds, Token: leader.Token}
			}
		}
	})
	return func() {
		cancel()
		watching.Wait()
	}
}

// watched reports whether the watch has shown the record of whoever was elected last:
// where a store is polled, that takes a while.
func (s *Stage) watched() bool {
	token := uint64(0)
	for _, e := range s.history.Events {
		if e.Kind == history.Elected {
			token = e.Token
		}
	}
	return slices.ContainsFunc(s.history.Events, func(e history.Event) bool {
		return e.Kind == history.Holds && e.Token == token
	})
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
	leads := s.leads(who)
	s.note(history.Event{At: now, Who: who, Kind: what})
	if fate := fates()[what]; fate != "" && leads {
		s.note(history.Event{At: now, Who: who, Kind: history.Due, Within: s.history.Life, Text: who + " was " + fate})
	}
	s.cast[who].Signal(sig)
}

// fates are what ends a leadership.
func fates() map[history.Kind]string {
	return map[history.Kind]string{history.Killed: "killed", history.Stopped: "put to sleep"}
}

func (s *Stage) note(e history.Event) {
	s.history.Events = append(s.history.Events, e)
	switch e.Kind {
	case history.Became:
		s.roles[e.Who] = e.Value
	case history.Killed, history.Stopped:
		s.roles[e.Who] = "" // for the time being it has none
	}
	s.Tell(e)
}

// heir returns who is next, empty if nobody says so.
func (s *Stage) heir() string {
	for who, role := range s.roles {
		if role == history.Heir {
			return who
		}
	}
	return ""
}

// leads reports whether a candidate leads, as far as was told: whoever was elected last,
// though the leader before it may not have told yet that its term is over.
func (s *Stage) leads(who string) bool {
	for _, e := range slices.Backward(s.history.Events) {
		switch {
		case e.Kind == history.Elected:
			return e.Who == who
		case e.Who != who:
		case e.Kind == history.Ended, e.Kind == history.Killed, e.Kind == history.Ready:
			return false
		}
	}
	return false
}

// leave ends all processes, and notes their last words: the leader's at the end,
// so that it hands over to nobody.
func (s *Stage) leave(stop func()) {
	leaders, others := []*witness.Process{}, []*witness.Process{}
	for who, p := range s.cast {
		if s.leads(who) {
			leaders = append(leaders, p)
		} else {
			others = append(others, p)
		}
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for _, ps := range [][]*witness.Process{others, leaders} {
			var all sync.WaitGroup
			for _, p := range ps {
				all.Go(func() { end(p, s.TTL/3+2*time.Second) })
			}
			all.Wait()
		}
		stop()
	}()
	for {
		select {
		case e := <-s.events:
			s.note(e)
		case <-gone:
			return
		}
	}
}

// clean removes the records of those who could not, now that nobody is left who
// could mind.
func (s *Stage) clean(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	var wrong error
	for _, safe := range append(reserved.Beside(s.Name), s.Name) {
		rec, err := s.Store.Get(ctx, safe)
		if err == nil {
			err = s.Store.Delete(ctx, safe, rec)
		}
		if err != nil && !errors.Is(err, kv.ErrVacant) && !errors.Is(err, kv.ErrStale) {
			wrong = errors.Join(wrong, fmt.Errorf("demo: remove the last record of %q: %w", safe, err))
		}
	}
	return wrong
}
