// Package leases simulates processes that lead many elections with leases that they
// share, on a small model of a store that has such leases.
package leases

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/internal/mistake"
	"github.com/electkv/election/internal/seam"
	"github.com/electkv/election/kv"
)

// longestVacancy is for how long nobody leads at most: a record that is left behind lives for
// three TTLs, and requests are lost before and after.
const longestVacancy = 10 * leaseTTL

// A ward is what a simulation of shared leases has seen of one election.
type ward struct {
	leads  *election.Term
	terms  int
	vacant time.Time     // since when nobody leads
	worst  time.Duration // for how long nobody led
	both   int           // overlaps
}

// share simulates processes that lead many elections with shared leases.
func share(t *testing.T, engine seam.Engine, seed uint64, bug string, horizon time.Duration) (terms, overlaps int, worst time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		v := &vault{
			random: rand.New(rand.NewPCG(seed, 0)), leases: map[string]time.Time{},
			records: map[string]kv.Record{}, changed: make(chan struct{}),
		}
		ctx, cancel := context.WithTimeout(t.Context(), horizon)
		defer cancel()
		const elections, processes = 6, 2
		start := time.Now()
		var mu sync.Mutex
		var wards [elections]ward
		var all sync.WaitGroup
		for p := range processes {
			store := &sharer{vault: v, bug: bug, asked: map[string]time.Time{}, may: map[string]map[string]bool{}}
			for i := range elections {
				w, random := &wards[i], rand.New(rand.NewPCG(seed, uint64(1+p*elections+i)))
				c, err := election.New(store, fmt.Sprint("election ", i), &election.Options{ID: fmt.Sprint("p", p), TTL: leaseTTL, NoHeir: true})
				require.NoError(t, err)
				engine.SetClock(c, func() (mono, boot time.Duration) { return time.Since(start), time.Since(start) })
				w.vacant = start
				all.Go(func() {
					for ctx.Err() == nil {
						stay := time.Duration(random.Int64N(int64(3 * leaseTTL)))
						coming, leave := context.WithTimeout(ctx, stay)
						_ = c.Run(coming, func(ctx context.Context, term *election.Term) error {
							mu.Lock()
							if w.leads != nil && w.leads.Err() == nil {
								w.both++
							}
							w.leads, w.terms, w.worst = term, w.terms+1, max(w.worst, time.Since(w.vacant))
							mu.Unlock()
							<-ctx.Done()
							mu.Lock()
							w.vacant = time.Now()
							mu.Unlock()
							return nil
						})
						leave()
					}
				})
			}
		}
		all.Wait()
		for _, w := range wards {
			terms, overlaps = terms+w.terms, overlaps+w.both
			worst = max(worst, w.worst, horizon-w.vacant.Sub(start))
		}
	})
	return terms, overlaps, worst
}

// Prove shows that terms that share leases are safe, and end and begin in time.
func Prove(t *testing.T, engine seam.Engine) {
	terms := 0
	for seed := range uint64(6) {
		led, overlaps, worst := share(t, engine, seed, "", 40*time.Minute)
		t.Logf("seed %d: %d terms, nobody led for up to %v", seed, led, worst)
		require.Zero(t, overlaps, "seed %d", seed)
		require.Less(t, worst, 2*longestVacancy, "seed %d", seed) // the draws are not those of the seed alone
		terms += led
	}
	require.Greater(t, terms, 15_000)
}

// CatchBugs shows that the simulation catches the bugs that a sharer can have.
func CatchBugs(t *testing.T, engine seam.Engine) {
	for seed := range uint64(3) {
		_, overlaps, _ := share(t, engine, seed, trustsTheTxn, 20*time.Minute)
		_, old, _ := share(t, engine, seed, forgetsTheAge, 20*time.Minute)
		_, _, worst := share(t, engine, seed, forgetsOrphans, 20*time.Minute)
		t.Logf("seed %d: %d overlaps by %s, %d by %s; nobody led for %v by %s", seed, overlaps, trustsTheTxn, old, forgetsTheAge, worst, forgetsOrphans)
		if overlaps == 0 || old == 0 || worst <= longestVacancy {
			mistake.Missed(t, fmt.Sprintf("seed %d has %d overlaps by %s, %d by %s, and the longest vacancy by %s is %v",
				seed, overlaps, trustsTheTxn, old, forgetsTheAge, forgetsOrphans, worst))
		}
	}
}
