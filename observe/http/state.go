package electionhttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/electkv/election"
	"github.com/electkv/election/internal/snapshot"
)

// A title is the answer of /, as the leader-elector of Kubernetes gave it.
type title struct {
	Name string `json:"name"`
}

// String says it to people.
func (t title) String() string { return t.Name }

// name answers who leads.
func (h *Handler) name(w http.ResponseWriter, r *http.Request) {
	t, err := h.leader(r.Context())
	if err != nil {
		refuse(w, r, http.StatusServiceUnavailable, err)
		return
	}
	if t.Name == h.candidate.ID() && !h.leads() { // its record is still there, or it is about to lead
		t.Name = ""
	}
	answer(w, r, http.StatusOK, t)
}

// leads reports whether this process leads, by its clock.
func (h *Handler) leads() bool { return h.candidate.Status().Role == election.RoleLeader }

// leader returns who leads now, by the store, unless this process knows that it does.
func (h *Handler) leader(ctx context.Context) (title, error) {
	if h.leads() {
		return title{h.candidate.ID()}, nil
	}
	l, err := h.leaders.ask(ctx, h.start, func() (election.Leader, error) {
		ctx, cancel := h.bounded()
		defer cancel()
		l, err := election.Current(ctx, h.store, h.candidate.Name())
		if errors.Is(err, election.ErrNoLeader) {
			err = nil
		}
		h.heard(err)
		return l, err
	})
	return title{l.ID}, err
}

// A status is the answer of /status.
type status struct {
	snapshot.State
	Self    self     `json:"self"`
	Trouble []string `json:"trouble,omitempty"` // what could not be read, and why
}

// status answers what elect status knows, and what this process is.
func (h *Handler) status(w http.ResponseWriter, r *http.Request) {
	v, err := h.states.ask(r.Context(), h.start, h.read)
	if err != nil {
		answer(w, r, http.StatusServiceUnavailable, struct {
			failure
			Self self `json:"self"`
		}{failure{err.Error()}, h.selfInFull()})
		return
	}
	answer(w, r, http.StatusOK, status{v.State, h.selfInFull(), v.trouble})
}

func (h *Handler) selfInFull() self {
	s := h.candidate.Status()
	full := h.self(s)
	full.Contact = s.Contact.UTC()
	return full
}

// read reads the state of the election.
func (h *Handler) read() (v view, err error) {
	ctx, cancel := h.bounded()
	defer cancel()
	v.State, err = snapshot.Read(ctx, h.store, h.candidate.Name(), h.within(), func(err error) {
		v.trouble = append(v.trouble, err.Error())
	})
	h.heard(err)
	if err != nil {
		err = fmt.Errorf("cannot tell who leads: %w", err)
	}
	return v, err
}
