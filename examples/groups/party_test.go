package main

import (
	"context"
	"crypto/tls"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/group"
	"github.com/electkv/election/kv"
)

// A party is some processes, and the groups that they have led.
type party struct {
	*testing.T
	tls *tls.Config

	mu  sync.Mutex
	led []string // "leader: members", in order
}

// starts starts a process, which ends with the test.
func (p *party) starts(store kv.Store, id string) {
	opts := &group.Options{
		ID: id, Peers: []string{id}, Cluster: "test", TLS: p.tls,
		Interval: 3 * time.Second, // a busy machine breaks no group
		Logger:   slog.New(slog.NewTextHandler(p.Output(), nil)).With("self", id),
	}
	ctx, stop := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() {
		over <- run(ctx, store, opts, func(ctx context.Context, g group.Group) error {
			p.mu.Lock()
			p.led = append(p.led, id+": "+strings.Join(g.Members, " "))
			p.mu.Unlock()
			<-ctx.Done()
			return nil
		})
	}()
	p.Cleanup(func() {
		stop()
		require.ErrorIs(p, <-over, context.Canceled)
	})
}

// groups returns those that these processes have led.
func (p *party) groups(ids ...string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.led), func(s string) bool {
		leader, _, _ := strings.Cut(s, ": ")
		return !slices.Contains(ids, leader)
	})
}

// merge waits until the newest group of these processes is all of them.
func (p *party) merge(ids ...string) (newest string) {
	p.Helper()
	require.Eventually(p, func() bool {
		all := p.groups(ids...)
		if len(all) == 0 {
			return false
		}
		newest = all[len(all)-1]
		return strings.HasSuffix(newest, ": "+strings.Join(slices.Sorted(slices.Values(ids)), " "))
	}, 5*time.Minute, 10*time.Millisecond)
	return newest
}
