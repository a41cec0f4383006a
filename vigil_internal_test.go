package election

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv"
)

// incomparable is a store that is no key of a map.
type incomparable struct {
	kv.Store
	_ []int
}

// kept returns how many vigils some candidates' terms keep, and how many terms do.
func kept(names ...string) (vigilsKept, terms int) {
	vigilMu.Lock()
	defer vigilMu.Unlock()
	for _, v := range vigils {
		before := terms
		for t := range v.terms {
			if slices.Contains(names, t.c.name) {
				terms++
			}
		}
		if terms > before {
			vigilsKept++
		}
	}
	return vigilsKept, terms
}

func TestTermsFindOutTogetherThatTheSystemWasAsleep(t *testing.T) {
	for what, c := range map[string]struct {
		store  func() kv.Store
		vigils int
	}{
		"of one store":                         {func() kv.Store { return memkv.New() }, 1},
		"of a store that cannot be told apart": {func() kv.Store { return incomparable{Store: memkv.New()} }, 2},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := c.store()
				for range 2 { // the second vigil is another
					sleepTwo(t, store, c.vigils)
				}
			})
		})
	}
}

// asleepFor returns the clocks of a host that was suspended for so long.
func asleepFor(asleep *atomic.Int64) func() (mono, boot time.Duration) {
	epoch := time.Now()
	return func() (mono, boot time.Duration) {
		d := time.Since(epoch)
		return d, d + time.Duration(asleep.Load())
	}
}

// sleepTwo has two candidates lead while the system falls asleep.
func sleepTwo(t *testing.T, store kv.Store, want int) {
	var asleep atomic.Int64
	var terms []*Term
	for _, name := range []string{"vigil/a", "vigil/b"} {
		c, err := New(store, name, &Options{TTL: 10 * time.Second})
		require.NoError(t, err)
		c.clock.read = asleepFor(&asleep)
		term, err := c.Campaign(t.Context())
		require.NoError(t, err)
		terms = append(terms, term)
	}
	vigilsKept, leading := kept("vigil/a", "vigil/b")
	require.Equal(t, want, vigilsKept)
	require.Equal(t, 2, leading)
	time.Sleep(1100 * time.Millisecond) // one look
	asleep.Store(int64(time.Minute))
	time.Sleep(time.Second) // another; a refresh would find out in one second more
	synctest.Wait()
	for _, term := range terms {
		require.ErrorIs(t, context.Cause(term.ctx.Context), ErrLost, "nobody has asked")
	}
	vigilsKept, leading = kept("vigil/a", "vigil/b")
	require.Zero(t, vigilsKept+leading, "nothing is kept when nobody leads")
	for _, term := range terms {
		require.NoError(t, term.Resign(t.Context()))
	}
}

// deaf is a store that answers no refresh.
type deaf struct{ kv.Store }

func (deaf) Refresh(ctx context.Context, _ string, _ kv.Record) (kv.Record, error) {
	<-ctx.Done()
	return kv.Record{}, ctx.Err()
}

// Nobody looks again, and the next refresh would be due much later.
func TestATermWithTrustLeftAfterASuspendEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asleep atomic.Int64
		c, err := New(deaf{memkv.New()}, "vigil/c", &Options{TTL: time.Minute})
		require.NoError(t, err)
		c.clock.read = asleepFor(&asleep)
		term, err := c.Campaign(t.Context())
		require.NoError(t, err)
		trusted := 54 * time.Second // the TTL less the margin
		time.Sleep(1500 * time.Millisecond)
		asleep.Store(int64(trusted - 5*time.Second))
		time.Sleep(3 * time.Second)
		require.NoError(t, context.Cause(term.ctx.Context))
		time.Sleep(time.Second)
		synctest.Wait()
		require.ErrorIs(t, context.Cause(term.ctx.Context), ErrLost, "nobody has asked")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.NoError(t, term.Resign(ctx))
	})
}

func TestAVigilGoesOnForTheTermsThatAreLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memkv.New()
		var terms []*Term
		for _, name := range []string{"vigil/a", "vigil/b"} {
			cand, err := New(store, name, nil)
			require.NoError(t, err)
			term, err := cand.Campaign(t.Context())
			require.NoError(t, err)
			terms = append(terms, term)
		}
		require.NoError(t, terms[0].Resign(t.Context()))
		_, leading := kept("vigil/a", "vigil/b")
		require.Equal(t, 1, leading)
		require.NoError(t, terms[1].Err())
		require.NoError(t, terms[1].Resign(t.Context()))
		_, leading = kept("vigil/a", "vigil/b")
		require.Zero(t, leading)
	})
}
