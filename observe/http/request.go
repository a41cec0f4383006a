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
	"github.com/electkv/election/internal/views"
	"github.com/electkv/election/kv"
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
	if r.URL.Query().Has("any") {
		h.carryOut(w, r, func(ctx context.Context) error {
			return election.RequestResign(ctx, h.store, h.candidate.Name())
		})
		return
	}
	status := h.candidate.Status()
	if status.Role != election.RoleLeader {
		refuse(w, r, http.StatusConflict, errNotLeader)
		return
	}
	own := views.Over(h.store, ownTerm{h.store, h.candidate.Name(), status.Token})
	h.carryOut(w, r, func(ctx context.Context) error {
		err := election.RequestResign(ctx, own, h.candidate.Name())
		if errors.Is(err, election.ErrNoLeader) {
			return errNotLeader
		}
		return err
	})
}

// errNotLeader refuses to depose another process.
var errNotLeader = errors.New("this process does not lead: ask the one that does, or add ?any to ask whichever leads")

// An ownTerm is a store that does not show another term than this process's. The store may be read
// after that has ended, and another process must not be deposed then.
type ownTerm struct {
	kv.Store
	name  string
	token uint64
}

// Get implements [kv.Store].
func (s ownTerm) Get(ctx context.Context, name string) (kv.Record, error) {
	rec, err := s.Store.Get(ctx, name)
	if err == nil && name == s.name && rec.Token != s.token {
		return kv.Record{}, kv.ErrVacant
	}
	return rec, err
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
	err := h.untilClosed(r.Context(), ask)
	switch {
	case err == nil:
	case errors.Is(err, errNotLeader), errors.Is(err, election.ErrNoLeader), errors.Is(err, election.ErrHeld),
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

// untilClosed does what Close ends, and waits for.
func (h *Handler) untilClosed(ctx context.Context, do func(context.Context) error) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(h.ctx, func() { cancel(errClosed) })
	defer stop()
	done := make(chan struct{})
	if !h.start(func() { defer close(done); err = do(ctx) }) {
		return errClosed
	}
	<-done
	return err
}

// done is the answer if the leader has done what was asked for.
type done struct {
	title
	Trouble string `json:"trouble,omitempty"`
}
