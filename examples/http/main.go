// Example http is a service of which one instance at a time answers; the others
// send their callers there. Start it a few times, and ask each:
//
//	go run ./examples/http
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/electkv/election"
	filekv "github.com/electkv/election/backends/file"
	"github.com/electkv/election/kv"
)

func main() {
	dir := flag.String("dir", filepath.Join(os.TempDir(), "election-examples"), "directory that the processes share")
	flag.Parse()
	store, err := filekv.New(*dir)
	if err != nil {
		log.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	s := &service{store: store, url: "http://" + listener.Addr().String()}
	log.Println("ask", s.url)
	go func() { log.Fatal(s.campaign(context.Background())) }()
	log.Fatal(http.Serve(listener, s))
}

type service struct {
	store kv.Store
	url   string
	term  atomic.Pointer[election.Term] // nil while it does not lead
}

// campaign publishes the URL whenever it is elected.
func (s *service) campaign(ctx context.Context) error {
	candidate, err := election.New(s.store, "http", &election.Options{Value: s.url})
	if err != nil {
		return err
	}
	return candidate.Run(ctx, func(ctx context.Context, term *election.Term) error {
		s.term.Store(term)
		defer s.term.Store(nil)
		<-ctx.Done()
		return nil
	})
}

// ServeHTTP asks the term at each request: it may have ended since the last.
func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if term := s.term.Load(); term != nil && term.Err() == nil {
		fmt.Fprintln(w, "served under token", term.Token())
		return
	}
	leader, err := election.Current(r.Context(), s.store, "http")
	if err != nil || leader.Foreign || leader.Value == s.url {
		http.Error(w, "nobody leads yet: try again", http.StatusServiceUnavailable)
		return
	}
	http.Redirect(w, r, leader.Value+r.URL.Path, http.StatusTemporaryRedirect)
}
