package electionhttp

import (
	"net/http"
	"slices"

	"github.com/electkv/election"
)

// role answers 200 while the candidate has one of the roles.
func (h *Handler) role(roles ...election.Role) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s := h.candidate.Status()
		h.tell(w, r, slices.Contains(roles, s.Role), s)
	}
}

// live answers 503 if this process should be killed: its work goes on although another may
// lead. A term that has ended is no reason, since its work may be about to stop, and a store that
// does not answer is none, since a restart does not mend it.
func (h *Handler) live(w http.ResponseWriter, r *http.Request) {
	s := h.candidate.Status()
	h.tell(w, r, s.Overdue == 0, s)
}
