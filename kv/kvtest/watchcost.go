package kvtest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

const (
	waitingIsFree = "Waiting is cheap: where the store can push, an unchanged safe costs no requests except a rare read as a backstop. Where it cannot, it costs few."
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

// looks is how often idle looks at the processor before it believes that watches spin. The
// Go runtime collects garbage unasked every two minutes, which can cost as much as its budget.
const looks = 3

// idle requires that the watches yield nothing for a while and cost few
// requests, those of meanwhile not counted, which tells how many it sent.
func (t *trial) idle(crowd []*watcher, meanwhile func() int64) {
	t.Helper()
	time.Sleep(t.ttl / 4) // what they have begun with
	for look := 1; ; look++ {
		busy, budget := t.cost(crowd, meanwhile)
		if busy < budget {
			break
		}
		t.Logf("processor time of %d watches: %v, not below %v (look %d of %d)", len(crowd), busy, budget, look, looks)
		require.Less(t, look, looks, "processor time: the watches spin")
	}
	for _, w := range crowd {
		w.staysQuiet(time.Millisecond)
	}
}

// cost requires that the watches send few requests for a while, and returns the processor
// time that this process took meanwhile, and how much of it watches may take.
func (t *trial) cost(crowd []*watcher, meanwhile func() int64) (busy, budget time.Duration) {
	t.Helper()
	start, before, others, calls := time.Now(), t.requests(), int64(0), 0
	used := processorTime()
	window := min(max(2*t.ttl, 2*time.Second), 4*time.Second)
	for time.Since(start) < window {
		if meanwhile != nil {
			others += meanwhile()
			calls++
		}
		time.Sleep(t.ttl / 5)
	}
	n, took := t.requests()-before-others, time.Since(start)
	allowed := int64(float64(len(crowd)) * (toBegin + perSecond*took.Seconds()))
	require.LessOrEqual(t, n, allowed, "requests of %d watches in %v", len(crowd), took)
	busy = processorTime() - used
	t.Logf("%d watches sent %d requests and took %v of a processor in %v", len(crowd), n, busy, took.Round(time.Millisecond))
	return busy, took/20 + time.Duration(int(n)+calls)*perRequest
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
