// Example sidecar is a service that knows nothing of elections, and works while
// somebody else says so: elect, in a container beside it. The two requests are in
// deploy/kubernetes/sidecar.yaml.
//
//	go run ./examples/sidecar &
//	elect run --on-lost 'curl -X POST localhost:8080/stop' work -- \
//		sh -c 'exec curl -sS -X POST "localhost:8080/lead?token=$ELECTION_TOKEN"'
package main

import (
	"context"
	"errors"
	"flag"
	"log"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

func main() {
	addr := flag.String("listen", "127.0.0.1:8080", "address for the requests, which nobody else should reach")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s := service{ctx: ctx, cancel: func() {}}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /lead", s.lead)
	mux.HandleFunc("POST /stop", s.stop)
	server := http.Server{Addr: *addr, Handler: mux}
	go func() {
		<-ctx.Done()
		s.work.Lock() // when the work has stopped
		server.Close()
	}()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		log.Fatal(err)
	}
}

type service struct {
	ctx  context.Context // ends with the process
	work sync.Mutex      // held while it works

	mu     sync.Mutex
	cancel context.CancelFunc // ends the work
}

// lead works until the request is broken off, or /stop comes, or the process ends.
func (s *service) lead(_ http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	s.mu.Lock()
	s.cancel()
	s.cancel = cancel
	s.mu.Unlock()
	s.work.Lock()
	defer s.work.Unlock()
	token := r.URL.Query().Get("token")
	log.Println("leading token=" + token)
	for ctx.Err() == nil {
		log.Println("working token=" + token)
		time.Sleep(time.Second) // a step that cannot be broken off
	}
	log.Println("stopped token=" + token)
}

// stop answers when the work has stopped.
func (s *service) stop(http.ResponseWriter, *http.Request) {
	s.mu.Lock()
	s.cancel()
	s.mu.Unlock()
	s.work.Lock()
	defer s.work.Unlock()
}
