package group_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	memkv "github.com/electkv/election/backends/mem"
	"github.com/electkv/election/group"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// enrol has a member enter a roster, and follow it, until the test ends. It returns what SetRoster
// said last, if that was an error.
func (c *trio) enrol(a *actor, store kv.Store, id string) *testenv.Speech {
	c.Helper()
	said := &testenv.Speech{}
	own, err := election.New(store, "cache", &election.Options{ID: id, Logger: slog.New(slog.NewTextHandler(said, nil))})
	require.NoError(c, err)
	ctx, stop := context.WithCancel(context.Background())
	attended, followed := make(chan error, 1), make(chan struct{})
	go func() { attended <- own.Attend(ctx) }()
	go func() {
		defer close(followed)
		for all, err := range election.WatchMembers(ctx, store, "cache") {
			if err != nil {
				continue
			}
			addrs := []string{}
			for _, one := range all {
				addrs = append(addrs, one.ID)
			}
			if err := a.SetRoster(addrs); err != nil {
				fmt.Fprintln(said, err)
			}
		}
	}()
	c.Cleanup(func() {
		stop()
		require.ErrorIs(c, <-attended, election.ErrStopped)
		<-followed
	})
	return said
}

func says(t *testing.T, said *testenv.Speech, text string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(said.String(), text) }, patience, 10*time.Millisecond, "%q is not in:\n%s", text, said)
}

// Whatever is in the roster, those that belong together are a group.
func TestARosterWithAllThatShouldNotBeInItLosesNothing(t *testing.T) {
	t.Parallel()
	store, c := memkv.New(), newTrio(t)
	entered := 0
	enter := func(id string) {
		entered++
		key := fmt.Sprintf("key%d", entered)
		_, err := store.Create(t.Context(), kv.MemberName("cache", key), kv.Record{Signature: id + "/" + key, Note: "{}", TTL: time.Hour})
		require.NoError(t, err)
	}
	store.Put(kv.MemberName("cache", "1"), "another program's")
	store.Put(kv.MemberName("cache", "2"), "\xff\x00\x1b[31m"+strings.Repeat("x", 1<<16))
	enter("host-7")
	enter("http://host-7:7000/")
	enter(c.opts.Peers[0]) // another process says that it is the first
	nobody := testenv.FreeAddr(t)
	enter(nobody)

	ids, alone := c.opts.Peers, func(o *group.Options) { o.Peers = []string{o.ID} }
	first, said := c.start(0, alone)
	second, _ := c.start(1, alone)
	odd, _ := c.start(2, func(o *group.Options) { alone(o); o.Cluster = "other" })
	says(t, c.enrol(first, store, ids[0]), "roster_same_id")
	log := c.enrol(second, store, ids[1])
	c.enrol(odd, store, ids[2])
	c.merge(ids[:2]...)
	c.merge(ids[2])
	says(t, said, "the roster lists what is no address, which is skipped")
	says(t, said, `cluster is`)
	require.Equal(t, 1, strings.Count(said.String(), "no address"), said)

	for i := range 10_000 {
		enter(fmt.Sprintf("host-%d:7000", i))
	}
	says(t, log, "want at most 64; the peers stay as they were")
	c.merge(ids[:2]...) // as they were
}
