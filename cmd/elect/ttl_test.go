//go:build unix

package main

import (
	"log/slog"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/cmd/elect/internal/stores"
)

// flagged returns the flags of elect run, of which these were given.
func flagged(ttl, grace time.Duration, given ...string) *runFlags {
	f := &runFlags{ttl: ttl, grace: grace, given: func(flag string) bool { return slices.Contains(given, flag) }}
	return f
}

func TestTheGraceThatNobodyNamedFitsEachTTL(t *testing.T) {
	t.Parallel()
	address, err := stores.Parse("mem:", os.Getenv)
	require.NoError(t, err)
	store, err := address.Open()
	require.NoError(t, err)
	for ttl := 400 * time.Millisecond; ttl < time.Minute; ttl += 70 * time.Millisecond {
		f := flagged(ttl, usualGrace, "ttl")
		_, err := f.candidate(store, "job", slog.New(slog.DiscardHandler))
		require.NoError(t, err, ttl)
		require.Equal(t, ttl, f.ttl)
		require.LessOrEqual(t, f.grace, usualGrace)
		if ttl >= time.Second {
			require.Equal(t, min(usualGrace, ttl/3).Truncate(time.Millisecond), f.grace)
		}
	}
}

func TestTheUsualTTLAndGraceAreWhatTheHelpSays(t *testing.T) {
	t.Parallel()
	f := flagged(usualTTL, usualGrace)
	margin, err := f.settle(func(time.Duration) bool { return true })
	require.NoError(t, err)
	require.Equal(t, 15*time.Second, f.ttl)
	require.Equal(t, 5*time.Second, f.grace)
	require.Equal(t, 6500*time.Millisecond, margin)
}

func TestTheTTLThatNobodyNamedFitsTheStoreAndTheGrace(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]time.Duration{
		"consul://127.0.0.1:1":             15 * time.Second,
		"consul://127.0.0.1:1?min-ttl=40s": 40 * time.Second,
	} {
		address, err := stores.Parse(url, os.Getenv)
		require.NoError(t, err)
		store, err := address.Open()
		require.NoError(t, err)
		f := flagged(usualTTL, usualGrace)
		_, err = f.candidate(store, "job", slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		require.Equal(t, want, f.ttl)
	}

	f := flagged(usualTTL, usualGrace)
	_, err := f.settle(func(ttl time.Duration) bool { return ttl <= 4*time.Second })
	require.NoError(t, err)
	require.Equal(t, 4*time.Second, f.ttl)
	require.Equal(t, 1333*time.Millisecond, f.grace)

	f = flagged(usualTTL, 14*time.Second, "grace")
	_, err = f.settle(func(time.Duration) bool { return true })
	require.NoError(t, err)
	require.Equal(t, 24800*time.Millisecond, f.ttl)
	require.Equal(t, 14*time.Second, f.grace)
}

func TestWhatTheUserSaidOfTTLAndGraceIsRefusedIfItDoesNotFit(t *testing.T) {
	t.Parallel()
	f := flagged(4*time.Second, 5*time.Second, "ttl", "grace")
	_, err := f.settle(func(ttl time.Duration) bool { return ttl >= 20*time.Second })
	require.ErrorContains(t, err, "--grace 5s does not fit --ttl 4s")
	require.ErrorContains(t, err, "use --grace 2.26s or less, or --ttl 20s or more") // which the store takes
}

func TestRunTakesAShortTTLWithoutAGrace(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	e := p.run("true", "--ttl", "4s")
	require.Zero(t, e.status(t))
}
