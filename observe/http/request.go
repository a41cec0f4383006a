package electionhttp

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/electkv/election"
)

// longestID is that of Options.ID, in bytes.
const longestID = 512

// guarded lets those through that know the token.
func (h *Handler) guarded(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		given := sha256.Sum256([]byte(token))
		switch {
		case h.options.Token == "":
			refuse(w, r, http.StatusForbidden, errors.New("this is off: it takes a token here (Options.Token; elect run --http-token-file)"))
		case !strings.EqualFold(scheme, "Bearer"):
			w.Header().Set("WWW-Authenticate", "Bearer")
			refuse(w, r, http.StatusUnauthorized, errors.New("no token: send Authorization: Bearer TOKEN"))
		case subtle.ConstantTimeCompare(given[:], h.digest[:]) == 0:
			w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
			refuse(w, r, http.StatusUnauthorized, errors.New("the token is not the one that this process was given"))
		default:
			next(w, r)
		}
	}
}

// resign asks this process to step down, or with ?any whichever leads.
func (h *Handler) resign(w http.ResponseWriter, r *http.Request) {
	if !h.leads() && !r.URL.Query().Has("any") {
		refuse(w, r, http.StatusConflict, errors.New("this process does not lead: ask the one that does, or add ?any to ask whichever leads"))
		return
	}
	h.carryOut(w, r, func(ctx context.Context) error {
		return election.RequestResign(ctx, h.store, h.candidate.Name())
	})
}

// transfer asks the leader to hand over.
func (h *Handler) transfer(w http.ResponseWriter, r *http.Request) {
	ids := r.URL.Query()["to"]
	if len(ids) != 1 || ids[0] == "" {
		refuse(w, r, http.StatusBadRequest, errors.New("no ID to hand over to, or more than one: use POST /transfer?to=ID"))
		return
	}
	id := ids[0]
	if len(id) > longestID || !utf8.ValidString(id) || strings.ContainsFunc(id, unicode.IsControl) {
		refuse(w, r, http.StatusBadRequest, fmt.Errorf("no candidate has the ID %.80q: it is at most %d bytes of UTF-8 without control characters", id, longestID))
		return
	}
	h.carryOut(w, r, func(ctx context.Context) error {
		return election.RequestTransfer(ctx, h.store, h.candidate.Name(), id)
	})
}

// carryOut makes a request to the leader, and answers who leads after it. If the client goes
// before the leader has agreed, the request is withdrawn.
func (h *Handler) carryOut(w http.ResponseWriter, r *http.Request, ask func(context.Context) error) {
	err := ask(r.Context())
	switch {
	case err == nil:
	case errors.Is(err, election.ErrNoLeader), errors.Is(err, election.ErrHeld),
		errors.Is(err, election.ErrNoHeir), errors.Is(err, election.ErrNoSuccession):
		refuse(w, r, http.StatusConflict, err)
		return
	default:
		refuse(w, r, http.StatusServiceUnavailable, err)
		return
	}
	t, err := h.leader(r.Context())
	if err != nil { // what was asked for is done all the same
		answer(w, r, http.StatusOK, done{Trouble: "it is done, but it cannot be told who leads now: " + err.Error()})
		return
	}
	answer(w, r, http.StatusOK, done{title: t})
}

// done is the answer if the leader has done what was asked for.
type done struct {
	title
	Trouble string `json:"trouble,omitempty"`
}
