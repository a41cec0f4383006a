//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/electkv/election"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/observe/http"
)

// farewell is how long answers that are under way have at the end.
const farewell = time.Second

// longestSocket is the length of a Unix socket's path, of which every system takes as much.
const longestSocket = 103

// webFlags are the flags of elect run for those who ask over HTTP.
type webFlags struct {
	address   string
	tokenFile string
	asked     func() bool // whether there is an address, though it may be empty
}

func (f *webFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.asked = func() bool { return flags.Changed("http") }
	flags.StringVar(&f.address, "http", "", "`address` for answers over HTTP: host:port, :port or unix:/path")
	flags.StringVar(&f.tokenFile, "http-token-file", "", "`file` with the token that lets POST /resign and /transfer through")
	complete(cmd, "http", cobra.ShellCompDirectiveNoFileComp)
}

// token reads the token; there is none without a file.
func (f *webFlags) token() (string, error) {
	switch {
	case f.tokenFile == "":
		return "", nil
	case !f.asked():
		return "", errors.New("--http-token-file has no effect without --http: add that, or leave it out")
	}
	text, err := os.ReadFile(f.tokenFile)
	if err != nil {
		return "", fmt.Errorf("--http-token-file: %w", err)
	}
	token := strings.TrimSpace(string(text))
	switch {
	case token == "":
		return "", fmt.Errorf("--http-token-file %s is empty: put a long random token into it", f.tokenFile)
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return "", fmt.Errorf("--http-token-file %s must contain one word of printable ASCII: put one long random token into it", f.tokenFile)
	}
	return token, nil
}

// serve begins to answer over HTTP, if the flags say so. Until there is a candidate, the
// answers are those of a process that waits for its store.
func (f *webFlags) serve(log *slog.Logger) (*web, error) {
	token, err := f.token()
	if err != nil || !f.asked() {
		return nil, err
	}
	listener, err := listen(f.address)
	if err != nil {
		return nil, fmt.Errorf("--http %q: %w", f.address, err)
	}
	w := &web{token: token, log: log}
	w.server = http.Server{
		Handler:           w,
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	w.serving.Go(func() {
		if err := w.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("no longer answers over HTTP", "error", err)
		}
	})
	log.Info("answering over HTTP", "address", listener.Addr())
	return w, nil
}

// A web answers over HTTP. A nil web answers nothing.
type web struct {
	token   string
	log     *slog.Logger
	server  http.Server
	serving sync.WaitGroup
	handler atomic.Pointer[electionhttp.Handler] // nil while there is no candidate
}

// ServeHTTP answers a request.
func (w *web) ServeHTTP(to http.ResponseWriter, r *http.Request) {
	if h := w.handler.Load(); h != nil {
		h.ServeHTTP(to, r)
		return
	}
	to.Header().Set("Cache-Control", "no-store")
	to.Header().Set("Content-Type", "application/json")
	if r.URL.Path != "/livez" {
		to.WriteHeader(http.StatusServiceUnavailable)
	}
	_, _ = io.WriteString(to, `{"error":"waiting for the store"}`+"\n")
}

// speak has the web answer for a candidate.
func (w *web) speak(c *election.Candidate, store kv.Store) error {
	if w == nil {
		return nil
	}
	h, err := electionhttp.New(c, store, &electionhttp.Options{Token: w.token})
	if err == nil {
		w.handler.Store(h)
	}
	return err
}

// stop lets answers that are under way end, for a moment. It may be called twice.
func (w *web) stop() {
	if w == nil {
		return
	}
	if h := w.handler.Load(); h != nil {
		h.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	if err := w.server.Shutdown(ctx); err != nil {
		w.log.Debug("answers over HTTP were broken off", "error", err)
		w.server.Close()
	}
	w.serving.Wait()
}

// listen listens at the address of --http.
func listen(address string) (net.Listener, error) {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		return listenUnix(path)
	}
	const use = "use host:port, :port or unix:/path"
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, errors.New("is no address; " + use)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return nil, fmt.Errorf("port %q is not a number from 0 to 65535; %s", port, use)
	}
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", address)
	return listener, withoutOp(err)
}

// listenUnix listens at a Unix socket. One that was left there by a process that was killed is
// removed.
func listenUnix(path string) (net.Listener, error) {
	switch {
	case !filepath.IsAbs(path):
		return nil, errors.New("is not an absolute path; use unix:/path")
	case len(path) > longestSocket:
		return nil, fmt.Errorf("has a path of %d bytes, and a socket's has at most %d; use a shorter one", len(path), longestSocket)
	}
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case info.Mode().Type() != fs.ModeSocket:
		return nil, errors.New("exists and is not a socket; use another path")
	default:
		conn, err := new(net.Dialer).Dial("unix", path)
		if err == nil {
			conn.Close()
			return nil, errors.New("another process answers there; use another path")
		}
		if errors.Is(err, syscall.ECONNREFUSED) {
			_ = os.Remove(path) // or the next step says why not
		}
	}
	listener, err := new(net.ListenConfig).Listen(context.Background(), "unix", path)
	return listener, withoutOp(err)
}

// withoutOp returns the cause of an error of package net, without the address, which the user
// has given.
func withoutOp(err error) error {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Err
	}
	return err
}
