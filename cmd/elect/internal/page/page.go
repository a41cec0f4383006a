package page

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"path"
	"strings"
	"sync/atomic"
	"time"

	"github.com/electkv/election/cmd/elect/internal/chronicle"
)

//go:embed static
var static embed.FS

// A Page shows a chronicle.
type Page struct {
	chronicle *chronicle.Chronicle
	store     string
	window    time.Duration

	instance string // tells one run of the program from the next
	streams  atomic.Int32
	end      end
}

// New returns a page that shows a chronicle of elections in a store, at first so much time.
func New(c *chronicle.Chronicle, store string, window time.Duration) *Page {
	return &Page{chronicle: c, store: store, window: window, instance: rand.Text(), end: end{news: make(chan struct{})}}
}

// Streams returns how many browsers are looking at the page.
func (p *Page) Streams() int { return int(p.streams.Load()) }

// Serve answers requests until ctx ends, and closes the listener. It returns nil after the end
// of ctx.
func (p *Page) Serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler:           guarded(isLoopback(l.Addr()), p.handler()),
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		BaseContext:       func(net.Listener) context.Context { return ctx }, // the streams end with it
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	ended := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		err := server.Shutdown(bounded)
		if err != nil {
			err = server.Close() // somebody reads very slowly
		}
		ended <- err
	})
	err := server.Serve(l)
	if stop() { // ctx has not ended
		return errors.Join(err, server.Close())
	}
	return <-ended
}

func (p *Page) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", asset("index.html"))
	for _, name := range []string{"page.css", "page.js"} {
		mux.HandleFunc("GET /"+name, asset(name))
	}
	mux.HandleFunc("GET /api/elections", p.elections)
	mux.HandleFunc("GET /api/events", p.events)
	return mux
}

// asset answers with an embedded file.
func asset(name string) http.HandlerFunc {
	text, err := static.ReadFile(path.Join("static", name))
	if err != nil {
		panic(err) // it is embedded
	}
	tag := fmt.Sprintf(`"%.16x"`, sha256.Sum256(text))
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", tag)
		w.Header().Set("Cache-Control", "no-cache") // but to ask whether it is still the same
		http.ServeContent(w, r, name, time.Time{}, strings.NewReader(string(text)))
	}
}
