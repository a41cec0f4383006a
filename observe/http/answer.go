package electionhttp

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/electkv/election"
)

// A self is what this process is, as the answers say it. Durations are in seconds.
type self struct {
	ID        string        `json:"id"`
	Role      election.Role `json:"role"`
	Token     uint64        `json:"token"`     // zero if it does not lead
	Remaining float64       `json:"remaining"` // for how long the lease can be trusted
	Overdue   float64       `json:"overdue,omitempty"`

	// When the store last answered the candidate. Only in /status.
	Contact time.Time `json:"contact,omitzero"`
}

// self returns what this process is, by a status of just now.
func (h *Handler) self(s election.Status) self {
	return self{ID: h.candidate.ID(), Role: s.Role, Token: s.Token, Remaining: seconds(s.Remaining), Overdue: seconds(s.Overdue)}
}

// seconds rounds down: what is left of trust must not grow.
func seconds(d time.Duration) float64 { return float64(d.Milliseconds()) / 1000 }

// String says it to people.
func (s self) String() string {
	text := fmt.Sprintf("%s: %s", s.ID, s.Role)
	if s.Token != 0 {
		text += fmt.Sprintf(", token %d, trusted for %gs", s.Token, s.Remaining)
	}
	if s.Overdue > 0 {
		text += fmt.Sprintf(", work overdue for %gs", s.Overdue)
	}
	return text
}

// tell answers with what this process is.
func (h *Handler) tell(w http.ResponseWriter, r *http.Request, ok bool, s election.Status) {
	code := http.StatusOK
	if !ok {
		code = http.StatusServiceUnavailable
	}
	answer(w, r, code, h.self(s))
}

// A failure is why there is no other answer.
type failure struct {
	Error string `json:"error"`
}

// String says it to people.
func (f failure) String() string { return f.Error }

// refuse answers with an error.
func refuse(w http.ResponseWriter, r *http.Request, code int, err error) {
	answer(w, r, code, failure{strings.TrimPrefix(err.Error(), "election: ")})
}

// answer answers with JSON, or with text if that is what the client accepts.
func answer(w http.ResponseWriter, r *http.Request, code int, body any) {
	text, known := body.(fmt.Stringer)
	if known && strings.HasPrefix(r.Header.Get("Accept"), "text/plain") {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(code)
		fmt.Fprintln(w, text)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = encode(w, body) // the client has gone
}

// encode writes a value as one line of JSON.
func encode(w interface{ Write([]byte) (int, error) }, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
