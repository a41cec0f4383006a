// Package snapshot reads the state of an election at one moment: who leads, who is next,
// and what keeps it closed. It is what elect status and the handler of observe/http show.
package snapshot

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/electkv/election"
	"github.com/electkv/election/kv"
)

// A State says who leads an election. Its JSON is that of elect status and elect watch.
type State struct {
	Time  time.Time `json:"time"`
	Name  string    `json:"name"`
	ID    string    `json:"id"`
	Value string    `json:"value"`
	Token uint64    `json:"token"`
	State string    `json:"state"` // leader, vacant or foreign

	// What status knows beyond that, if anything.
	Lock    string `json:"lock,omitempty"`    // what a foreign lock looks like
	Waiting *int   `json:"waiting,omitempty"` // how many stand in its line
	Hidden  string `json:"hidden,omitempty"`  // another lock, which the URL does not see

	Hold *Hold `json:"hold,omitempty"` // what keeps it closed beyond a term

	Since *time.Time `json:"since,omitempty"` // by the leader's wall clock

	// What it knows where there is a succession.
	Rank  *int     `json:"rank,omitempty"`
	Heir  *Heir    `json:"heir,omitempty"`
	Heirs []string `json:"heirs,omitempty"` // whom the leader wants after it, in order

	Members []Member `json:"members,omitempty"` // of its roster, if anybody keeps a record there
}

// The values of State.State.
const (
	Leader  = "leader"
	Vacant  = "vacant"
	Foreign = "foreign"
)

// An Heir is who is next.
type Heir struct {
	ID    string    `json:"id"`
	Value string    `json:"value"`
	Rank  int       `json:"rank"`
	Since time.Time `json:"since,omitzero"` // by its own wall clock
}

// A Hold is what keeps an election closed beyond its leader's term.
type Hold struct {
	ID      string    `json:"id"`
	Since   time.Time `json:"since,omitzero"` // by its own wall clock
	Until   time.Time `json:"until,omitzero"` // about when it is over, by the same clock
	Foreign bool      `json:"foreign,omitempty"`
}

// Of returns the state of an election by what [election.Current] or [election.Watch] have
// answered now. An error that is not [election.ErrNoLeader] is for the caller to see to.
func Of(name string, leader election.Leader, err error) State {
	s := State{Time: time.Now().UTC(), Name: name, ID: leader.ID, Value: leader.Value, Token: leader.Token, State: Leader}
	switch {
	case errors.Is(err, election.ErrNoLeader):
		s.State = Vacant
	case leader.Foreign:
		s.State = Foreign
	}
	return s
}

// Read reads the state of an election. If it cannot be told who leads, it returns why.
// Anything else that cannot be told is left out, and trouble is called with the reason. All that
// follows the first read takes no longer than within.
func Read(ctx context.Context, store kv.Store, name string, within time.Duration, trouble func(error)) (State, error) {
	leader, err := election.Current(ctx, store, name)
	if err != nil && !errors.Is(err, election.ErrNoLeader) {
		return State{}, err
	}
	s := Of(name, leader, err)
	if !leader.Since.IsZero() {
		since := leader.Since.UTC()
		s.Since = &since
	}
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("no answer within %v", within))
	defer cancel()
	s.succeed(ctx, store, leader, trouble)
	s.hold(ctx, store, trouble)
	s.members(ctx, store, trouble)
	return s, nil
}

// succeed adds what is known of the succession.
func (s *State) succeed(ctx context.Context, store kv.Store, leader election.Leader, trouble func(error)) {
	if s.State == Leader {
		heirs, err := election.CurrentHeirs(ctx, store, s.Name)
		if err != nil && !errors.Is(err, election.ErrNoLeader) { // it may have gone just now
			trouble(fmt.Errorf("cannot tell whom the leader wants after it: %w", err))
		}
		s.Heirs = heirs
	}
	next, err := election.CurrentHeir(ctx, store, s.Name)
	switch {
	case err == nil:
		s.Heir = &Heir{ID: next.ID, Value: next.Value, Rank: next.Rank, Since: next.Since.UTC()}
	case !errors.Is(err, election.ErrNoHeir) && !errors.Is(err, kv.ErrInvalid): // no safe, no heir
		trouble(fmt.Errorf("cannot tell who is heir: %w", err))
	}
	if s.State == Leader && (leader.Rank != 0 || s.Heir != nil || len(s.Heirs) > 0) { // there is a succession
		s.Rank = &leader.Rank
	}
}

// hold adds what keeps the election closed.
func (s *State) hold(ctx context.Context, store kv.Store, trouble func(error)) {
	h, err := election.CurrentHold(ctx, store, s.Name)
	switch {
	case err == nil:
		s.Hold = &Hold{ID: h.ID, Since: h.Since.UTC(), Until: h.Until.UTC(), Foreign: h.Foreign}
	case !errors.Is(err, election.ErrNoHold) && !errors.Is(err, kv.ErrInvalid): // no safe, no hold
		trouble(fmt.Errorf("cannot tell whether a hold keeps it closed: %w", err))
	}
}
