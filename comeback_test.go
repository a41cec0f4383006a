package election_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// All terms end, and then all elections are led again.
func TestTenThousandElectionsGetTheirStoreBackWithoutAStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 10 * thousand
		s := newBusy(time.Millisecond)
		leading, stop := stand(t, s, many)
		defer stop()
		time.Sleep(ttl / 4)
		require.EqualValues(t, many, leading.Load())
		s.out.Store(true)
		time.Sleep(ttl)
		require.Zero(t, leading.Load())
		s.peak()
		s.out.Store(false)
		time.Sleep(ttl / 2)
		require.EqualValues(t, many, leading.Load())
		requests, together := s.peak()
		require.LessOrEqual(t, requests, 4*many, "of each a look, two claims and a refresh")
		require.LessOrEqual(t, together, atOnce)
	})
}

// No term ends, and nobody claims or looks. A refresh that was lost is made once more.
func TestElectionsThatMissTheirStoreForAMomentKeepTheirTermsAndMakeNoStorm(t *testing.T) {
	for _, away := range []time.Duration{ttl / 10, ttl / 4} {
		t.Run(away.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newBusy(time.Millisecond)
				leading, stop := stand(t, s, thousand)
				defer stop()
				time.Sleep(ttl)
				s.peak()
				s.out.Store(true)
				time.Sleep(away)
				require.EqualValues(t, thousand, leading.Load())
				s.out.Store(false)
				for range 10 {
					time.Sleep(ttl / 10)
					require.EqualValues(t, thousand, leading.Load())
				}
				requests, together := s.peak()
				require.LessOrEqual(t, requests, 5*thousand, "four refreshes of each, and one more")
				require.Zero(t, together)
			})
		})
	}
}
