package electionhttp

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/electkv/election"
	"github.com/electkv/election/internal/snapshot"
	"github.com/electkv/election/kv"
)

// Options say what a handler does besides answering. The zero value of each field means its
// default.
type Options struct {
	// Token lets those who know it make the leader resign or hand over: they send it as
	// "Authorization: Bearer TOKEN". It travels as it is, so use TLS, a Unix socket or the
	// loopback interface. Default: nobody may.
	Token string

	// Streams is how many clients may follow /events at a time. Default: 64.
	Streams int
}

const defaultStreams = 64

// A Handler answers what one candidate is. Its methods may be called from any goroutine.
type Handler struct {
	candidate *election.Candidate
	store     kv.Store
	options   Options
	digest    [sha256.Size]byte // of the token
	mux       *http.ServeMux

	contact contact
	leaders flight[election.Leader]
	states  flight[view]
	pasts   flight[past]
	feed    feed

	mu     sync.Mutex
	closed bool
	ctx    context.Context // ends with Close
	end    context.CancelFunc
	work   sync.WaitGroup // what was started
}

// New returns a handler for a candidate and its store. It sends no requests. Options may be
// nil. The error says which argument is wrong, and what would be right.
func New(candidate *election.Candidate, store kv.Store, opts *Options) (*Handler, error) {
	o := Options{}
	if opts != nil {
		o = *opts
	}
	switch {
	case candidate == nil:
		return nil, errors.New("electionhttp: candidate is nil: give it one of election.New")
	case store == nil:
		return nil, errors.New("electionhttp: store is nil: give it the candidate's")
	case strings.ContainsFunc(o.Token, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return nil, errors.New("electionhttp: the token has characters that a header cannot carry: use letters, digits and -._~+/=")
	case o.Streams < 0:
		return nil, fmt.Errorf("electionhttp: %d streams: leave it out for %d", o.Streams, defaultStreams)
	case o.Streams == 0:
		o.Streams = defaultStreams
	}
	h := &Handler{candidate: candidate, store: store, options: o, digest: sha256.Sum256([]byte(o.Token))}
	h.ctx, h.end = context.WithCancel(context.Background())
	h.mux = h.routes()
	return h, nil
}

// routes returns what answers which path.
func (h *Handler) routes() *http.ServeMux {
	mux := http.NewServeMux()
	reads := []string{http.MethodGet, http.MethodHead, http.MethodOptions}
	for _, route := range []struct {
		path    string
		methods []string
		answer  http.HandlerFunc
	}{
		{"/leader", reads, h.role(election.RoleLeader)},
		{"/heir", reads, h.role(election.RoleHeir)},
		{"/standby", reads, h.role(election.RoleCandidate, election.RoleHeir)},
		{"/livez", reads, h.live},
		{"/readyz", reads, h.ready},
		{"/{$}", reads, h.name},
		{"/status", reads, h.status},
		{"/history", reads, h.history},
		{"/events", reads[:2], h.events},
		{"/resign", []string{http.MethodPost}, h.guarded(h.resign)},
		{"/transfer", []string{http.MethodPost}, h.guarded(h.transfer)},
	} {
		for _, method := range route.methods {
			if method != http.MethodHead { // which is a GET
				mux.HandleFunc(method+" "+route.path, route.answer)
			}
		}
		allowed := strings.Join(route.methods, ", ")
		mux.HandleFunc(route.path, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Allow", allowed)
			refuse(w, r, http.StatusMethodNotAllowed, fmt.Errorf("%s is not for this path: use %s", r.Method, allowed))
		})
	}
	mux.HandleFunc("/", notFound)
	return mux
}

func notFound(w http.ResponseWriter, r *http.Request) {
	refuse(w, r, http.StatusNotFound, errors.New("there is no such path: use /leader, /heir, /standby, /livez, /readyz, /status, /history, /events or /"))
}

// ServeHTTP implements [http.Handler]. It works below [http.StripPrefix].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	switch p := r.URL.EscapedPath(); {
	case p == "": // all of it was the prefix
		again := *r
		root := *r.URL
		root.Path, root.RawPath = "/", ""
		again.URL = &root
		h.mux.ServeHTTP(w, &again)
	case path.Clean("/"+p) != p: // which the mux would redirect, without the prefix
		notFound(w, r)
	default:
		h.mux.ServeHTTP(w, r)
	}
}

// Close ends all streams and requests to the store, and waits for them. After it, only what
// this process is can be answered. Call it before the server's Shutdown, which would wait for the
// streams, and before the store's client is closed.
func (h *Handler) Close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.end()
	h.work.Wait()
}

// start does something in the background, until Close. It reports false, and does nothing, after
// Close.
func (h *Handler) start(do func()) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.work.Go(do)
	}
	return !h.closed
}

// within is how long a request to the store may take.
func (h *Handler) within() time.Duration { return h.candidate.TTL() / 3 }

// bounded returns a context for a request to the store.
func (h *Handler) bounded() (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(h.ctx, h.within(), fmt.Errorf("no answer within %v", h.within()))
}

// A view is the state of the election, and what of it could not be read.
type view struct {
	snapshot.State
	trouble []string
}
