//go:build linux

package faults

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvfault"
)

// Neighbours are other elections that a process leads, without rivals. Their records are
// refreshed together with that of the election that is played, and share its lease where
// records do.
type neighbours struct {
	leading, terms atomic.Int64
	all            sync.WaitGroup
}

// begin leads them until ctx ends.
func (n *neighbours) begin(ctx context.Context, p *process, store kv.Store) error {
	for i := range p.Neighbours {
		name := fmt.Sprintf("%s-%s-%d", p.Name, p.Who[0], i)
		if i%2 == 0 {
			name = fmt.Sprintf("{%s}-%s-%d", p.Name, p.Who[0], i) // in the slot of a cluster that the election is in
		}
		c, err := election.New(store, name, &election.Options{ID: p.Who[0], TTL: p.TTL, NoHeir: true, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			return err
		}
		n.all.Go(func() { _ = c.Run(ctx, n.lead) })
	}
	return nil
}

func (n *neighbours) lead(ctx context.Context, _ *election.Term) error {
	n.leading.Add(1)
	n.terms.Add(1)
	defer n.leading.Add(-1)
	<-ctx.Done()
	return nil
}

// What a process tells of itself that is no part of the election.
//
// counted tells, in Value, how many of its neighbours a process leads, in how many terms it
// has led them, and how many requests it has made in all.
// gaveUp says that its first candidate has quit, and that the process goes on.
const (
	counted history.Kind = "counted"
	gaveUp  history.Kind = "gave up"
)

func (p *process) count() {
	requests := 0
	for op := kvfault.Create; op <= kvfault.HandOver; op++ {
		requests += p.faults.Calls(op)
	}
	p.tell(history.Event{Kind: counted, Who: p.Who[0], Value: fmt.Sprint(p.near.leading.Load(), p.near.terms.Load(), requests)})
}

// A count is what a process has counted.
type count struct{ leading, terms, requests int }

// count has a process count.
func (s *stage) count(who string) (n count) {
	s.t.Helper()
	s.tell(who, "count")
	_, err := fmt.Sscan(s.awaitOf(who, counted).Value, &n.leading, &n.terms, &n.requests)
	require.NoError(s.t, err)
	return n
}

// surrounded waits until a process leads all its neighbours, in so many terms in all or more.
func (s *stage) surrounded(who string, terms int) count {
	s.t.Helper()
	late := time.Now().Add(s.recovery() + patience)
	for {
		n := s.count(who)
		if n.leading == s.actor(who).part.Neighbours && n.terms >= terms {
			return n
		}
		require.True(s.t, time.Now().Before(late), "%s leads %d neighbours of %d, in %d terms", who, n.leading, s.actor(who).part.Neighbours, n.terms)
		s.pass(20 * time.Millisecond)
	}
}

// undisturbed demands that a process has led all its neighbours since.
func (s *stage) undisturbed(who string, since count) {
	s.t.Helper()
	now := s.count(who)
	require.Equal(s.t, since.leading, now.leading, "neighbours of %s that it leads", who)
	require.Equal(s.t, since.terms, now.terms, "terms of its neighbours")
}
