package engine_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/kv"
)

const ttl = 10 * time.Second

// A ballot watches over one election in a test: it sees every term begin, and
// fails the test if two are alive at once or a token does not grow.
type ballot struct {
	t    *testing.T
	name string

	mu    sync.Mutex
	terms []*election.Term
	ids   []string
}

func newBallot(t *testing.T) *ballot {
	return &ballot{t: t, name: "billing"}
}

// candidate returns a candidate of this election on its own view of the store.
func (b *ballot) candidate(store kv.Store, id string, change ...func(*election.Options)) *election.Candidate {
	opts := &election.Options{ID: id, Value: "at " + id, TTL: ttl, Logger: logger(b.t)}
	for _, c := range change {
		c(opts)
	}
	c, err := election.New(store, b.name, opts)
	require.NoError(b.t, err)
	return c
}

// count notes that a term has begun.
func (b *ballot) count(id string, term *election.Term) {
	b.mu.Lock()
	defer b.mu.Unlock()
	require.NoError(b.t, term.Err(), "a term is alive when it begins")
	for i, old := range b.terms {
		require.Errorf(b.t, old.Err(), "two leaders: %s began term %d while %s's term %d was alive", id, term.Token(), b.ids[i], old.Token())
		require.Greater(b.t, term.Token(), old.Token(), "tokens grow")
	}
	b.terms, b.ids = append(b.terms, term), append(b.ids, id)
}

// leaders returns the IDs of all terms so far, in order.
func (b *ballot) leaders() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Join(b.ids, " ")
}

// all returns the terms so far, in order.
func (b *ballot) all() []*election.Term {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.terms)
}

// last returns the newest term.
func (b *ballot) last() *election.Term {
	b.mu.Lock()
	defer b.mu.Unlock()
	require.NotEmpty(b.t, b.terms, "nobody was elected")
	return b.terms[len(b.terms)-1]
}

// run starts a candidate whose work lasts until its context ends. The returned
// function ends it, waits for it and returns its result.
func (b *ballot) run(c *election.Candidate, id string) (stop func() error) {
	return b.runWith(c, id, func(ctx context.Context, _ *election.Term) error {
		<-ctx.Done()
		return nil
	})
}

// succession has a lead and b be its heir, each on a store, and returns what stops a.
func (b *ballot) succession(leaders, heirs kv.Store) (stop func() error) {
	stop = b.run(b.candidate(leaders, "a", firstCome), "a")
	time.Sleep(ttl)
	b.run(b.candidate(heirs, "b", firstCome), "b")
	time.Sleep(ttl)
	return stop
}

func (b *ballot) runWith(c *election.Candidate, id string, lead func(context.Context, *election.Term) error) (stop func() error) {
	ctx, cancel := context.WithCancel(b.t.Context())
	result := make(chan error, 1)
	go func() {
		result <- c.Run(ctx, func(ctx context.Context, term *election.Term) error {
			b.count(id, term)
			return lead(ctx, term)
		})
	}()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-result
	})
	b.t.Cleanup(func() { _ = stop() })
	return stop
}

// logger shows the engine's log in the output of a failed test.
func logger(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(testWriter{t}, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}
