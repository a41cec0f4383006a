package lease

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/explore"
	"github.com/electkv/election/internal/mistake"
)

const (
	// seedVariable repeats one schedule, schedulesVariable says how many to run.
	seedVariable      = "PAXOS_SEED"
	schedulesVariable = "PAXOS_SCHEDULES"
)

func number(t *testing.T, variable string, otherwise uint64) uint64 {
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	require.NoError(t, err, variable)
	return n
}

// wander does moves at random in a world of three candidates, and tells what they were
// if it is given somebody to tell.
func wander(seed uint64, f flaws, durable bool, w *world, tell func(fmt.Stringer)) {
	random := rand.New(rand.NewPCG(seed, 0))
	w.flaws, w.durable, w.faults = f, durable, random.IntN(8)
	w.terms.MaxTTL, w.terms.Round = time.Duration(3+random.IntN(6)), time.Duration(2+random.IntN(2))
	w.acceptors, w.candidates = nil, nil
	w.fill(3)
	for i := range w.candidates {
		w.candidates[i].counter = uint64(random.IntN(10))
	}
	for range 120 {
		all := w.Moves()
		m := all[random.IntN(len(all))]
		if w.faults > 0 && random.IntN(12) > 0 { // faults are many, and seldom
			all = all[:len(all)-len(w.faultMoves())]
			m = all[random.IntN(len(all))]
		}
		if tell != nil {
			tell(m)
		}
		m.do(w)
		w.prune()
		if w.trouble != "" {
			return
		}
	}
}

func TestRandomSchedulesHaveOneOwner(t *testing.T) {
	seed := number(t, seedVariable, uint64(time.Now().UnixNano()))
	schedules := number(t, schedulesVariable, 10_000)
	t.Logf("%s=%d %s=%d", seedVariable, seed, schedulesVariable, schedules)
	var next atomic.Uint64
	var elected atomic.Int64
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for i := next.Add(1); i <= schedules && !t.Failed(); i = next.Add(1) {
				w := newWorld(flaws{})
				wander(seed+i-1, flaws{}, (seed+i)%2 == 0, w, nil)
				if w.token > 0 {
					elected.Add(1)
				}
				if w.trouble != "" {
					var path []fmt.Stringer
					wander(seed+i-1, flaws{}, (seed+i)%2 == 0, newWorld(flaws{}), func(m fmt.Stringer) { path = append(path, m) })
					t.Errorf("%s=%d %s=1: %s%s", seedVariable, seed+i-1, schedulesVariable, w.trouble, explore.Tale(path))
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d of %d schedules elected somebody", elected.Load(), schedules)
	require.GreaterOrEqual(t, elected.Load(), int64(schedules/4))
}

// Random schedules seldom meet what breaks a protocol; these flaws they do meet.
func TestRandomSchedulesFindFlaws(t *testing.T) {
	for name, f := range map[string]flaws{
		"fast acceptors":         {fastAcceptors: 500},
		"late timer":             {lateTimer: true},
		"a quarantine too short": {quarantine: 1},

		"any refusal counts as final":                  {anyRefusal: true},
		"whatever is given up is retracted":            {anyEnd: true},
		"what was refused or retracted can come again": {unspent: true},
		"what was there before is not restored":        {forgetful: true},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := uint64(1); seed < 200_000; seed++ {
				w := newWorld(f)
				if wander(seed, f, false, w, nil); w.trouble != "" {
					t.Logf("seed %d: %s", seed, w.trouble)
					return
				}
			}
			mistake.Missed(t, "no schedule came to harm")
		})
	}
}
