//go:build linux

package faults

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
)

// A middleman stands between all candidates and a Consul server. It passes on
// what they ask, and may bend their blocking queries and what is answered to
// them.
type middleman struct {
	addr string

	mu      sync.Mutex
	bend    bender
	queries int // blocking queries until now
}

// A bender changes a blocking query. It returns where the answer goes, or nil if
// it has answered itself.
type bender func(http.ResponseWriter, *http.Request) http.ResponseWriter

// newMiddleman starts a middleman in front of the server at addr, which ends
// with the test.
func newMiddleman(t testing.TB, addr string) *middleman {
	m := &middleman{}
	pass := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: addr})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("index") {
			w = m.meet(w, r)
		}
		if w != nil {
			pass.ServeHTTP(w, r)
		}
	}))
	// A query may go on for long, and nobody waits for it.
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	m.addr = server.Listener.Addr().String()
	return m
}

// meet counts a blocking query and bends it.
func (m *middleman) meet(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
	m.mu.Lock()
	m.queries++
	bend := m.bend
	m.mu.Unlock()
	if bend == nil {
		return w
	}
	return bend(w, r)
}

// bends has blocking queries bent, or no longer if bend is nil, and returns how
// many there have been.
func (m *middleman) bends(bend bender) (queries int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bend = bend
	return m.queries
}

// noIndex answers as if the server had no index.
type noIndex struct{ http.ResponseWriter }

func (n noIndex) WriteHeader(status int) {
	n.Header().Set("X-Consul-Index", "0")
	n.ResponseWriter.WriteHeader(status)
}
