// Example http is a service of which one instance at a time answers; the others
// send their callers there. Start it a few times, ask each, and stop one:
//
//	go run ./examples/http
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/electkv/election"
	filekv "github.com/electkv/election/backends/file"
	"github.com/electkv/election/kv"
)

func main() {
	dir := flag.String("dir", filepath.Join(os.TempDir(), "election-examples"), "directory that the processes share")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	store, err1 := filekv.New(*dir, nil)
	listener, err2 := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err := errors.Join(err1, err2); err != nil {
		log.Fatal(err)
	}
	s := service{store: store, url: "http://" + listener.Addr().String()}
	log.Println("ask", s.url)
	go func() { log.Fatal(http.Serve(listener, &s)) }()
	if err := s.campaign(ctx); ctx.Err() == nil { // when it has ended, another one answers
		log.Fatal(err)
	}
}

type service struct {
	store kv.Store
	url   string
	mu    sync.RWMutex   // read-locked while a request is served
	term  *election.Term // nil while it does not lead
}

func (s *service) lead(term *election.Term) { s.mu.Lock(); defer s.mu.Unlock(); s.term = term }

func (s *service) campaign(ctx context.Context) error { // until ctx ends
	candidate, err := election.New(s.store, "http", &election.Options{Value: s.url})
	if err != nil {
		return err
	}
	return candidate.Run(ctx, func(ctx context.Context, term *election.Term) error {
		s.lead(term)
		<-ctx.Done()
		s.lead(nil) // the safe is given up when no request is served any more
		return nil
	})
}

// ServeHTTP asks the term at each request: it may have ended since the last.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.term != nil && s.term.Err() == nil {
		fmt.Fprintln(w, "served under token", s.term.Token())
		return
	}
	if leader, err := election.Current(r.Context(), s.store, "http"); err == nil && !leader.Foreign && leader.Value != s.url {
		http.Redirect(w, r, leader.Value+r.URL.Path, http.StatusTemporaryRedirect)
		return
	}
	http.Error(w, "nobody leads yet: try again", http.StatusServiceUnavailable)
}
