package kvtest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

const (
	waitingIsFree = "Waiting is free: where the store can push, an unchanged safe costs no requests but a rare look as a backstop; where it cannot, few."
	neverSpins    = "Watch never spins, whatever is in the safe."
)

var watchCostCases = []Case{
	{Name: "a watch of an unchanged safe is idle", Clause: waitingIsFree, check: aWatchOfAnUnchangedSafeIsIdle, alone: true},
	{Name: "a watch of a foreign record is idle", Clause: waitingIsFree + " " + neverSpins, check: aWatchOfAForeignRecordIsIdle, needs: putAndRemove, alone: true},
	{Name: "a watch of a record without an expiry is idle", Clause: waitingIsFree + " " + neverSpins, check: aWatchOfARecordWithoutAnExpiryIsIdle, needs: putAndRemove, alone: true},
	{Name: "a watch of a record that is refreshed is idle", Clause: waitingIsFree, check: aWatchOfARecordThatIsRefreshedIsIdle, alone: true},
}

// Requests that a watch may send: to begin with, and then a second.
const (
	toBegin   = 10
	perSecond = 4
)

func (t *trial) requests() int64 {
	if t.b.Requests == nil {
		return 0
	}
	return t.b.Requests()
}

// perRequest is what a client may compute for one request, under the race detector, on
// a slow machine.
const perRequest = 10 * time.Millisecond

// idle requires that the watches yield nothing for a while and cost few
// requests, those of meanwhile not counted, which tells how many it sent.
func (t *trial) idle(crowd []*watcher, meanwhile func() int64) {
	t.Helper()
	time.Sleep(t.ttl / 4) // what they have begun with
	start, before, others, calls := time.Now(), t.requests(), int64(0), 0
	busy := processorTime()
	window := min(max(2*t.ttl, 2*time.Second), 4*time.Second)
	for time.Since(start) < window {
		if meanwhile != nil {
			others += meanwhile()
			calls++
		}
		time.Sleep(t.ttl / 5)
	}
	n := t.requests() - before - others
	budget := int64(float64(len(crowd)) * (toBegin + perSecond*time.Since(start).Seconds()))
	require.LessOrEqual(t, n, budget, "requests of %d watches in %v", len(crowd), time.Since(start))
	busy = processorTime() - busy
	require.Less(t, busy, time.Since(start)/20+time.Duration(int(n)+calls)*perRequest, "processor time of %d watches in %v", len(crowd), time.Since(start))
	t.Logf("%d watches sent %d requests and took %v of a processor in %v", len(crowd), n, busy, time.Since(start).Round(time.Millisecond))
	for _, w := range crowd {
		w.staysQuiet(time.Millisecond)
	}
}

func aWatchOfAnUnchangedSafeIsIdle(t *trial) {
	name, rec := t.held()
	held, vacant := t.watch(t.s, name), t.watch(t.s, t.name())
	held.sees(rec)
	vacant.seesVacancy()
	t.idle([]*watcher{held, vacant}, nil)
}

func aWatchOfAForeignRecordIsIdle(t *trial) {
	var crowd []*watcher
	for _, value := range append(strangers, fromTheFuture) {
		w := t.watch(t.s, t.occupied(value))
		w.seesForeign(value)
		crowd = append(crowd, w)
	}
	t.idle(crowd, nil)
	for _, w := range crowd {
		t.b.Remove(t, w.name)
		w.seesVacancy()
	}
}

// Somebody restores records from a backup, or strips them of their expiry.
func aWatchOfARecordWithoutAnExpiryIsIdle(t *trial) {
	_, rec := t.held()
	bare := rec
	bare.Token, bare.Revision = 0, 0
	var crowd []*watcher
	for _, rec := range []kv.Record{rec, bare} {
		w := t.watch(t.s, t.occupied(kv.Encode(rec)))
		require.False(t, w.next().vacant(), "a record without an expiry is there")
		crowd = append(crowd, w)
	}
	t.idle(crowd, nil)
	for _, w := range crowd {
		t.b.Remove(t, w.name)
		w.seesVacancy()
	}
}

func aWatchOfARecordThatIsRefreshedIsIdle(t *trial) {
	name, rec := t.held()
	var crowd []*watcher
	for range 5 {
		w := t.watch(t.s, name)
		w.sees(rec)
		crowd = append(crowd, w)
	}
	t.idle(crowd, func() int64 {
		before := t.requests()
		t.refresh(t.s, name, rec)
		return min(t.requests()-before, 3)
	})
}
