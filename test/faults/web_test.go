//go:build linux

package faults

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/electkv/election"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/observe/http"
	"github.com/electkv/election/observe/prom"
)

// listenerFile is the descriptor of the listener that the stage has opened for a candidate's process.
// It is in the stage's network: no fault of the candidate's reaches it.
const listenerFile = 3

// A web answers over HTTP what the candidates of a process are, as elect run --http does, and has
// their metrics. A nil web answers nothing.
type web struct {
	part     part
	mux      http.ServeMux
	server   http.Server
	serving  sync.WaitGroup
	handlers sync.Map // *electionhttp.Handler of each candidate, by name
}

// newWeb begins to answer.
func newWeb(p part) (*web, error) {
	file := os.NewFile(listenerFile, "listener")
	defer file.Close()
	listener, err := net.FileListener(file)
	if err != nil {
		return nil, err
	}
	w := &web{part: p}
	w.server = http.Server{Handler: &w.mux, ReadHeaderTimeout: 5 * time.Second}
	w.serving.Go(func() {
		if err := w.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			fmt.Fprintln(os.Stderr, "no longer answers over HTTP:", err)
		}
	})
	return w, nil
}

// stop ends all answers.
func (w *web) stop() {
	if w == nil {
		return
	}
	w.handlers.Range(func(_, h any) bool {
		h.(*electionhttp.Handler).Close()
		return true
	})
	w.server.Close()
	w.serving.Wait()
}

// pathOf is where a web answers for a candidate: others of another election may come to have its port.
func pathOf(election, who string) string { return "/" + election + "/" + who }

// A window shows one candidate to those who ask. A nil window shows nothing.
type window struct {
	web     *web
	metrics *electionprom.Metrics
	stale   *parrot // with a planted bug
}

// window returns one for a candidate that is about to be made.
func (w *web) window() *window {
	if w == nil {
		return nil
	}
	return &window{web: w, metrics: electionprom.New(nil), stale: &parrot{}}
}

// hooks are those that the candidate is to have.
func (w *window) hooks() *election.Hooks {
	if w == nil {
		return nil
	}
	return election.JoinHooks(w.metrics.Hooks(), w.stale.hooks())
}

// open begins to show the candidate.
func (w *window) open(who string, c *election.Candidate, store kv.Store) error {
	if w == nil {
		return nil
	}
	handler, err := electionhttp.New(c, store, nil)
	if err != nil {
		return err
	}
	w.web.handlers.Store(who, handler)
	registry := prometheus.NewRegistry()
	if err := registry.Register(w.metrics); err != nil {
		return err
	}
	var answers, metrics http.Handler = handler, promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	switch w.web.part.Bug {
	case bugCachedRole:
		w.stale.next, answers = answers, w.stale
	case bugStaleGauge:
		w.stale.next, metrics = metrics, w.stale
	}
	path := pathOf(w.web.part.Name, who)
	w.web.mux.Handle(path+"/", http.StripPrefix(path, answers))
	w.web.mux.Handle(path+"/metrics", metrics)
	return nil
}

// A parrot repeats its last answer until the store has been heard again: what it knows is kept, and
// not computed by the clock.
type parrot struct {
	next  http.Handler
	heard atomic.Bool

	mu   sync.Mutex
	last *httptest.ResponseRecorder
}

func (p *parrot) hooks() *election.Hooks {
	return &election.Hooks{StoreDone: func(_ context.Context, i election.StoreDoneInfo) {
		if i.Outcome == election.OutcomeOK {
			p.heard.Store(true)
		}
	}}
}

func (p *parrot) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.heard.Swap(false) || p.last == nil {
		p.last = httptest.NewRecorder()
		p.next.ServeHTTP(p.last, r)
	}
	maps.Copy(w.Header(), p.last.Header())
	w.WriteHeader(p.last.Code)
	_, _ = w.Write(p.last.Body.Bytes())
}
