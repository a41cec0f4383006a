//go:build linux

package faults

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/history"
)

// A fence is what leaders write to: it remembers the largest token that it has
// seen, and refuses smaller ones.
type fence struct {
	path string
	note func(history.Event)

	mu      sync.Mutex
	largest uint64
}

// A stroke is one write, and a verdict the answer to it.
type stroke struct {
	Who   string
	Token uint64
}

type verdict struct{ Accepted bool }

// newFence starts a fence, which ends with the test.
func newFence(t testing.TB, note func(history.Event)) *fence {
	dir, err := os.MkdirTemp("", "fence-") //nolint:usetesting // a socket's path must be short
	require.NoError(t, err)
	f := &fence{path: filepath.Join(dir, "socket"), note: note}
	listener, err := net.Listen("unix", f.path)
	require.NoError(t, err)
	var all sync.WaitGroup
	var mu sync.Mutex
	conns := []net.Conn{}
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, conn)
			mu.Unlock()
			all.Go(func() { f.serve(conn) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		mu.Lock()
		for _, conn := range conns {
			conn.Close()
		}
		mu.Unlock()
		all.Wait()
		os.RemoveAll(dir)
	})
	return f
}

func (f *fence) serve(conn net.Conn) {
	defer conn.Close()
	in, out := json.NewDecoder(bufio.NewReader(conn)), json.NewEncoder(conn)
	for {
		var s stroke
		if in.Decode(&s) != nil || out.Encode(verdict{f.take(s)}) != nil {
			return
		}
	}
}

// take accepts or refuses a write. Its record is in the order of its decisions.
func (f *fence) take(s stroke) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	kind := history.Refused
	if s.Token >= f.largest {
		f.largest, kind = s.Token, history.Accepted
	}
	f.note(history.Event{At: boottime.Now(), Kind: kind, Who: s.Who, Token: s.Token})
	return kind == history.Accepted
}

// A pen writes to a fence.
type pen struct {
	who  string
	conn net.Conn
	in   *json.Decoder
	out  *json.Encoder
}

func newPen(path, who string) (*pen, error) {
	conn, err := net.Dial("unix", path)
	if err != nil {
		return nil, err
	}
	return &pen{who: who, conn: conn, in: json.NewDecoder(conn), out: json.NewEncoder(conn)}, nil
}

// write writes under a token. That it may be refused is the fence's business: a
// leader that is no longer one finds out by its term.
func (p *pen) write(token uint64) error {
	if err := p.out.Encode(stroke{p.who, token}); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	var v verdict
	if err := p.in.Decode(&v); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

func (p *pen) close() { p.conn.Close() }
