package fence_test

import (
	"errors"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election/fence"
)

func nothing() error { return nil }

// write lets a fence run a write, and reports whether it ran.
func write(f *fence.Fence, token uint64) (ran bool, err error) {
	err = f.Do(token, func() error { ran = true; return nil })
	return ran, err
}

func TestASmallerTokenIsRefusedAndAnEqualOneIsNot(t *testing.T) {
	f := fence.New()
	for _, token := range []uint64{5, 5, 7, 7, math.MaxUint64, math.MaxUint64} {
		ran, err := write(f, token)
		require.NoError(t, err)
		require.True(t, ran)
		require.NoError(t, f.Admit(token), "the same term")
		require.Equal(t, token, f.Largest())
	}
	for _, token := range []uint64{1, 5, 7, math.MaxUint64 - 1} {
		ran, err := write(f, token)
		require.ErrorIs(t, err, fence.ErrStale)
		require.False(t, ran)
		require.ErrorIs(t, f.Admit(token), fence.ErrStale)
	}
	require.Equal(t, uint64(math.MaxUint64), f.Largest())
}

func TestARefusalTellsBothTokens(t *testing.T) {
	f := fence.New()
	require.NoError(t, f.Admit(9))
	err := f.Do(4, nothing)
	var stale *fence.StaleError
	require.ErrorAs(t, err, &stale)
	require.Equal(t, fence.StaleError{Token: 4, Largest: 9}, *stale)
	require.EqualError(t, err, "fence: stale token 4: 9 was admitted before")
}

func TestTheTokenZeroIsRefused(t *testing.T) {
	f := fence.New()
	ran, err := write(f, 0)
	require.ErrorContains(t, err, "0 is the token of nobody")
	require.NotErrorIs(t, err, fence.ErrStale)
	require.False(t, ran)
	require.Error(t, f.Admit(0))
	require.Zero(t, f.Largest())
}

func TestDoReturnsWhatTheWriteReturns(t *testing.T) {
	f := fence.New()
	refused := errors.New("the table refuses the row")
	require.ErrorIs(t, f.Do(3, func() error { return refused }), refused)
	require.Equal(t, uint64(3), f.Largest(), "the token was admitted all the same")
	require.Panics(t, func() { _ = f.Do(3, func() error { panic("a mistake in the write") }) })
	require.NoError(t, f.Do(4, nothing), "a panic leaves nothing locked")
}

func TestALargerTokenWaitsForTheWriteThatRuns(t *testing.T) {
	for name, admit := range map[string]func(*fence.Fence, uint64) error{
		"Do":    func(f *fence.Fence, token uint64) error { return f.Do(token, nothing) },
		"Admit": (*fence.Fence).Admit,
	} {
		t.Run(name, func(t *testing.T) {
			f := fence.New()
			admitted := make(chan error, 1)
			require.NoError(t, f.Do(1, func() error {
				go func() { defer close(admitted); admitted <- admit(f, 2) }()
				select {
				case <-admitted:
					t.Error("admitted while a write with a smaller token runs")
				case <-time.After(200 * time.Millisecond): // it had every chance
				}
				return nil
			}))
			require.NoError(t, <-admitted)
			ran, err := write(f, 1)
			require.ErrorIs(t, err, fence.ErrStale)
			require.False(t, ran)
		})
	}
}

func TestWritesOfOneTermRunSideBySide(t *testing.T) {
	const many = 8
	for range 1000 { // each may be the first of its term
		f := fence.New()
		start, all := make(chan struct{}), make(chan struct{})
		var missing atomic.Int64
		missing.Store(many)
		var writers sync.WaitGroup
		for range many {
			writers.Go(func() {
				<-start
				assert.NoError(t, f.Do(1, func() error {
					if missing.Add(-1) == 0 {
						close(all)
					}
					select {
					case <-all: // they meet
						return nil
					case <-time.After(20 * time.Second):
						return errors.New("another one waits for this write to end")
					}
				}))
			})
		}
		close(start)
		writers.Wait()
		if t.Failed() {
			return
		}
	}
}

// The effect of the writes of many terms must be one that grows.
func TestWritesNeverComeAfterThoseOfALaterTerm(t *testing.T) {
	for name, open := range map[string]func(*testing.T) *fence.Fence{
		"memory": func(*testing.T) *fence.Fence { return fence.New() },
		"file":   func(t *testing.T) *fence.Fence { return reopen(t, t.TempDir()+"/fence") },
	} {
		t.Run(name, func(t *testing.T) {
			f := open(t)
			const terms, each = 40, 25
			var written atomic.Uint64
			var late, ran, refused atomic.Int64
			var writers sync.WaitGroup
			for token := uint64(1); token <= terms; token++ {
				writers.Go(func() {
					for range each {
						err := f.Do(token, func() error {
							ran.Add(1)
							if before := written.Swap(token); before > token {
								late.Add(1)
							}
							return nil
						})
						if errors.Is(err, fence.ErrStale) {
							refused.Add(1)
						} else if err != nil {
							t.Error(err)
						}
					}
				})
			}
			writers.Wait()
			require.Zero(t, late.Load(), "writes that undid those of a later term")
			require.EqualValues(t, terms, written.Load())
			require.EqualValues(t, terms*each, ran.Load()+refused.Load())
		})
	}
}

func TestAClosedFenceAdmitsNothing(t *testing.T) {
	for _, f := range []*fence.Fence{fence.New(), reopen(t, t.TempDir()+"/fence")} {
		require.NoError(t, f.Admit(1))
		require.NoError(t, f.Close())
		require.NoError(t, f.Close(), "closing twice is no mistake")
		for _, token := range []uint64{1, 2} {
			ran, err := write(f, token)
			require.ErrorIs(t, err, os.ErrClosed)
			require.False(t, ran)
		}
	}
}
