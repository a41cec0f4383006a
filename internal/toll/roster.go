// Package toll measures what a roster costs at a real server.
package toll

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/kv"
)

// Open returns a store that nobody else uses, and what counts the requests that it sends.
type Open func(t testing.TB) (store kv.Store, sent func() int64)

// A fare is the requests of one process in so many TTLs.
type fare struct {
	what     string
	with     bool
	requests int64
}

// ttls is for how long requests are counted.
const ttls = 10

// plays is how often requests are counted at most.
const plays = 4

// Roster has a process lead, another be heir and a third wait, each with a record in the roster
// and without one, and counts what each sends for ten TTLs. It reports that to t, and requires
// that the leader sends no more with a record than without one, give or take one in each ten,
// for the watches and for the requests at both ends.
//
// On a busy machine it counts again: with a longer TTL if somebody did not keep its role, and as it
// is if the leader sent more, since a client that waits long for a connection polls for half a minute
// (Consul's), and a cost of the roster shows each time.
func Roster(t *testing.T, open Open, ttl time.Duration) {
	t.Helper()
	for play := 1; ; play++ {
		more, steady := counted(t, open, ttl)
		if steady && more <= 0 {
			return
		}
		require.Less(t, play, plays, "the leader sent %d requests more than it may; all kept their roles: %v", more, steady)
		if !steady {
			ttl *= 2
		}
	}
}

// counted returns how many requests more than it may the leader has sent that has a record in the
// roster, and reports whether all kept their roles meanwhile.
func counted(t *testing.T, open Open, ttl time.Duration) (more int64, steady bool) {
	t.Helper()
	var fares []fare
	var mu sync.Mutex
	var all sync.WaitGroup
	steady = true
	for _, with := range []bool{false, true} {
		all.Go(func() {
			some, kept := measured(t, open, ttl, with)
			mu.Lock()
			defer mu.Unlock()
			fares, steady = append(fares, some...), steady && kept
		})
	}
	all.Wait()
	sent := make(map[string]int64)
	for _, f := range fares {
		sent[fmt.Sprint(f.what, f.with)] = f.requests
	}
	for _, what := range []string{"leader", "heir", "candidate"} {
		without, with := sent[what+"false"], sent[what+"true"]
		t.Logf("%-9s sends %.1f requests per TTL, and with a roster %.1f", what, float64(without)/ttls, float64(with)/ttls)
	}
	return sent["leadertrue"] - sent["leaderfalse"] - sent["leaderfalse"]/10 - 2, steady
}

// measured runs one election, and reports whether all kept their roles, and the leader its term.
func measured(t *testing.T, open Open, ttl time.Duration, with bool) (fares []fare, steady bool) {
	name := "toll-" + rand.Text()
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	stores, counts := make([]kv.Store, 3), make([]func() int64, 3)
	roles := []string{"leader", "heir", "candidate"}
	candidates := make([]*election.Candidate, 3)
	for i, id := range roles {
		stores[i], counts[i] = open(t)
		c, err := election.New(stores[i], name, &election.Options{ID: id, TTL: ttl, Succession: election.FirstCome, Roster: with})
		if err != nil {
			t.Error(err)
			return nil, true
		}
		candidates[i] = c
		running.Go(func() {
			_ = c.Run(ctx, func(ctx context.Context, _ *election.Term) error {
				<-ctx.Done()
				return nil
			})
		})
		for deadline := time.Now().Add(time.Minute); c.Status().Role != election.Role(id); time.Sleep(ttl / 20) {
			switch {
			case i > 0 && candidates[0].Status().Role != election.RoleLeader: // it has lost its term, and another leads
				return nil, false
			case time.Now().After(deadline):
				t.Errorf("%s did not become %[1]s", id)
				return nil, true
			}
		}
	}
	time.Sleep(3 * ttl) // until it is steady
	before, token := make([]int64, 3), candidates[0].Status().Token
	for i := range roles {
		before[i] = counts[i]()
	}
	time.Sleep(ttls * ttl)
	steady = candidates[0].Status().Token == token
	for i, role := range roles {
		fares = append(fares, fare{role, with, counts[i]() - before[i]})
		steady = steady && candidates[i].Status().Role == election.Role(role)
	}
	if with && steady {
		got, err := election.Members(ctx, stores[0], name)
		if err != nil || len(got) != 3 || got[2].Number == 0 {
			t.Errorf("members: %v, %v", got, err)
		}
	}
	return fares, steady
}
