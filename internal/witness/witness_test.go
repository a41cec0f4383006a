package witness_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/witness"
)

// A work is what a leader does whose witness is w.
type work func(ctx context.Context, w *witness.Witness, term *election.Term)

// history returns what a witness writes down while its candidate leads for a few TTLs, the end of
// which does not coincide with a refresh.
func (do work) history(t *testing.T) history.History {
	t.Helper()
	const ttl = time.Second
	var past witness.Chronicle
	synctest.Test(t, func(t *testing.T) {
		w := witness.New("anna", past.Note)
		candidate, err := election.New(w.Observe(memkv.New(), "n"), "n", &election.Options{TTL: ttl, NoHeir: true})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 28*ttl/10)
		defer cancel()
		require.ErrorIs(t, candidate.Run(ctx, func(ctx context.Context, term *election.Term) error {
			do(ctx, w, term)
			return nil
		}), context.DeadlineExceeded)
	})
	h := past.History(history.About{})
	require.Equal(t, h.Events, h.Of("anna"), "all is of the candidate")
	return h
}

// idle is work that does nothing until its term ends, so that it has no extension written down.
func idle(ctx context.Context, w *witness.Witness, term *election.Term) {
	if w.Begin(ctx, term) {
		<-ctx.Done()
		w.End("it was told to")
	}
}

func TestAnExtensionIsWrittenDownBeforeTheNextRefreshIsSent(t *testing.T) {
	h := work(idle).history(t)
	refreshes, extended := 0, true // by the election itself
	for _, e := range h.Of("", history.Sent, history.Extended) {
		switch {
		case e.Kind == history.Extended:
			extended = true
		case e.Op == history.OpRefresh:
			require.True(t, extended, "before refresh %d", refreshes)
			refreshes, extended = refreshes+1, false
		}
	}
	require.Greater(t, refreshes, 5)
}

// The term ends between two refreshes.
func TestTheLastExtensionIsWrittenDownBeforeTheEnd(t *testing.T) {
	h := work(idle).history(t)
	granted, extended, ended := 0, 0, 0
	for _, e := range h.Of("", history.Answered, history.Extended, history.Ended) {
		switch {
		case e.Kind == history.Extended:
			require.Zero(t, ended, "a term that is over is not extended")
			extended++
		case e.Kind == history.Ended:
			ended++
		case e.Op == history.OpRefresh && e.Result == history.OK:
			granted++
		}
	}
	require.Equal(t, 1, ended)
	require.Greater(t, granted, 5)
	require.Equal(t, granted, extended)
}

func TestATermThatIsOverDoesNotBegin(t *testing.T) {
	h := work(func(ctx context.Context, w *witness.Witness, term *election.Term) {
		<-ctx.Done()
		require.NoError(t, w.Lead(ctx, term))
	}).history(t)
	require.Empty(t, h.Of("", history.Elected, history.Extended, history.Worked, history.Ended))
	require.NotEmpty(t, h.Of("", history.Answered))
}
