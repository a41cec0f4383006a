package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/mem"
)

// A leader goes when its term is as long as it may be, or when an heir that comes
// before it has stood for Stability, whichever comes first.
func TestALeaderGoesForWhicheverReasonComesFirst(t *testing.T) {
	for name, c := range map[string]struct {
		stability, longest time.Duration
		stays              time.Duration // from the beginning of the term
		cause              string
	}{
		"Stability":    {3 * ttl, 10 * ttl, 5 * ttl, `gives way to "b"`},
		"MaxTerm":      {10 * ttl, 4 * ttl, 4 * ttl, "as long as a term may last"},
		"no MaxTerm":   {3 * ttl, 0, 5 * ttl, `gives way to "b"`},
		"MaxTerm over": {10 * ttl, ttl, 2 * ttl, "as long as a term may last"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, b := memkv.New(), newBallot(t)
				stand := func(id string, rank int) {
					b.run(b.candidate(store, id, byRank(rank), func(o *election.Options) {
						o.Stability, o.MaxTerm = c.stability, c.longest
					}), id)
				}
				stand("a", 0)
				for b.leaders() == "" {
					time.Sleep(time.Millisecond)
				}
				began := time.Now()
				time.Sleep(2*ttl - ttl/50)
				stand("b", 1)
				b.within(20*ttl, "a b")
				require.InDelta(t, c.stays, time.Since(began), float64(ttl/10))
				require.ErrorContains(t, b.all()[0].Err(), c.cause)
			})
		})
	}
}

// What an heir publishes meanwhile does not make it an heir anew.
func TestAnHeirStandsWithoutABreakWhateverItPublishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		b.run(b.candidate(store, "a", byRank(0)), "a")
		time.Sleep(ttl)
		b.run(b.candidate(store, "b", byRank(1)), "b")
		began := time.Now()
		for b.leaders() == "a" && time.Since(began) < 10*ttl {
			_ = b.last().SetHeirs(t.Context(), "x", time.Since(began).String()) // which the heir tells the others
			time.Sleep(ttl / 2)
		}
		require.Equal(t, "a b", b.leaders())
		require.Less(t, time.Since(began), 4*ttl, "Stability is three")
	})
}
