package electionhttp

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/electkv/election"
	"github.com/electkv/election/internal/snapshot"
)

// A past is the answer of /history: the last terms, the oldest first.
type past struct {
	Terms []snapshot.Term `json:"terms"`
}

// history answers who led before, and why it ended. It is empty while nobody leads.
func (h *Handler) history(w http.ResponseWriter, r *http.Request) {
	p, err := h.pasts.ask(r.Context(), h.start, h.recall)
	if err != nil {
		refuse(w, r, http.StatusServiceUnavailable, err)
		return
	}
	answer(w, r, http.StatusOK, p)
}

// recall reads it.
func (h *Handler) recall() (past, error) {
	ctx, cancel := h.bounded()
	defer cancel()
	terms, err := election.History(ctx, h.store, h.candidate.Name())
	if errors.Is(err, election.ErrNoLeader) {
		err = nil
	}
	h.heard(err)
	p := past{[]snapshot.Term{}}
	for _, t := range terms {
		p.Terms = append(p.Terms, snapshot.TermOf(h.candidate.Name(), t))
	}
	if err != nil {
		return p, fmt.Errorf("cannot tell who led: %w", err)
	}
	return p, nil
}
