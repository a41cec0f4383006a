//go:build unix

package page_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	memkv "github.com/electkv/election/backends/mem"
	"github.com/electkv/election/cmd/elect/internal/chronicle"
	"github.com/electkv/election/cmd/elect/internal/page"
	"github.com/electkv/election/internal/leak"
	"github.com/electkv/election/kv"
)

func TestMain(m *testing.M) { leak.Main(m) }

// A scene is a store with elections, and a page that shows them.
type scene struct {
	t      *testing.T
	store  *memkv.Store
	story  *chronicle.Chronicle
	page   *page.Page
	addr   string
	serial int

	leave func() // ends the server
}

// open shows elections on a page.
func open(t *testing.T, names ...string) *scene {
	t.Helper()
	s := &scene{t: t, store: memkv.New(), addr: "127.0.0.1:0"}
	s.story = chronicle.New(s.store)
	t.Cleanup(s.story.Close)
	s.story.Follow(names...)
	s.page = page.New(s.story, "mem:", time.Minute)
	s.serve()
	return s
}

// serve begins to answer requests, at the same address if it did before.
func (s *scene) serve() {
	s.t.Helper()
	var l net.Listener
	require.Eventually(s.t, func() (ok bool) {
		var err error
		l, err = new(net.ListenConfig).Listen(s.t.Context(), "tcp", s.addr)
		return err == nil
	}, 10*time.Second, 10*time.Millisecond)
	s.addr = l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.page.Serve(ctx, l) }()
	s.leave = func() {
		cancel()
		if err, ok := <-ended; ok {
			require.NoError(s.t, err)
			close(ended)
		}
	}
	s.t.Cleanup(s.leave)
}

func (s *scene) url() string { return "http://" + s.addr }

// record returns a record of a campaign of its own.
func (s *scene) record(id, value string) kv.Record {
	s.serial++
	return kv.Record{Signature: fmt.Sprintf("%s/N%d.1", id, s.serial), Value: value, TTL: time.Hour}
}

// elects has a candidate lead an election.
func (s *scene) elects(name, id string) kv.Record {
	s.t.Helper()
	rec, err := s.store.Create(s.t.Context(), name, s.record(id, ""))
	require.NoError(s.t, err)
	return rec
}

// loses ends a term as a crash would, at some time.
func (s *scene) loses(name string, rec kv.Record) {
	s.t.Helper()
	require.NoError(s.t, s.store.Delete(s.t.Context(), name, rec))
}

// handsOver has a leader hand over to its heir.
func (s *scene) handsOver(name string, leader, heir kv.Record) kv.Record {
	s.t.Helper()
	s.sees(name, func(e chronicle.Election) bool {
		h, ok := e.Heir()
		return ok && heir.Signature != "" && h.Owner.ID != ""
	})
	rec, err := s.store.HandOver(s.t.Context(), name, leader, name+":heir", heir, "")
	require.NoError(s.t, err)
	require.NoError(s.t, s.store.Delete(s.t.Context(), name+":heir", heir))
	return rec
}

// sees waits until something is known of an election.
func (s *scene) sees(name string, holds func(chronicle.Election) bool) {
	s.t.Helper()
	late := time.NewTimer(20 * time.Second)
	defer late.Stop()
	for {
		r := s.story.Report(0)
		for _, e := range r.Elections {
			if e.Name == name && holds(e) {
				return
			}
		}
		select {
		case <-r.Next:
		case <-late.C:
			require.FailNow(s.t, "it is not seen", "%+v", r.Elections)
		}
	}
}

// led waits until a candidate is seen to lead, and empty until nobody is.
func (s *scene) led(name, id string) {
	s.t.Helper()
	s.sees(name, func(e chronicle.Election) bool { return e.Now().State == chronicle.Led && e.Now().Owner.ID == id })
}

func (s *scene) empty(name string) {
	s.t.Helper()
	s.sees(name, func(e chronicle.Election) bool { return e.Now().State == chronicle.Vacant })
}
