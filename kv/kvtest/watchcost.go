package kvtest

import (
	"fmt"
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

// looks is how often idle looks before it believes that watches are not idle. A store may take
// seconds to begin to push while the machine is busy, and polls until then. And the Go runtime
// collects garbage unasked every two minutes, which can cost as much as the processor's budget.
const looks = 3

// idle requires that the watches yield nothing for a while and cost little. The requests of
// meanwhile, which tells how many it sent, are not counted.
func (t *trial) idle(crowd []*watcher, meanwhile func() int64) {
	t.Helper()
	time.Sleep(t.ttl / 4) // what they have begun with
	for look := 1; ; look++ {
		excess := t.excess(crowd, meanwhile)
		if excess == "" {
			break
		}
		t.Logf("look %d of %d: %d watches cost %s", look, looks, len(crowd), excess)
		require.Less(t, look, looks, "the watches are not idle: they cost %s", excess)
	}
	for _, w := range crowd {
		w.staysQuiet(time.Millisecond)
	}
}

// excess observes the watches for a while, and says what they cost too much of: requests, or
// processor time of this process. It returns nothing if they were idle.
func (t *trial) excess(crowd []*watcher, meanwhile func() int64) string {
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
	busy := processorTime() - used
	t.Logf("%d watches sent %d requests and took %v of a processor in %v", len(crowd), n, busy, took.Round(time.Millisecond))
	allowed := int64(float64(len(crowd)) * (toBegin + perSecond*took.Seconds()))
	budget := took/20 + time.Duration(int(n)+calls)*perRequest
	switch {
	case n > allowed:
		return fmt.Sprintf("%d requests in %v, and at most %d are allowed", n, took, allowed)
	case busy >= budget:
		return fmt.Sprintf("%v of a processor in %v, and less than %v is allowed", busy, took, budget)
	}
	return ""
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
