package kvtest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

const yieldsEach = "Watch yields the state of the safe: first the present one, then the state after each change, merged if the reader is slow. A vacant safe is yielded as ErrVacant with a zero Record, and the sequence goes on."

var watchCases = []Case{
	{Name: "a watch yields the present state first", Clause: yieldsEach, check: watched(aWatchYieldsThePresentStateFirst)},
	{Name: "a watch yields each later state", Clause: yieldsEach, check: watched(aWatchYieldsEachLaterState)},
	{Name: "a watch yields a hand-over", Clause: yieldsEach, check: aWatchYieldsAHandOver},
	{Name: "a watch yields a removal by an operator", Clause: yieldsEach, check: watched(aWatchYieldsARemoval), needs: remove},
	{Name: "a watch sees the successor of an expired record", Clause: yieldsEach, check: aWatchSeesTheSuccessorOfAnExpiredRecord},
	{Name: "a refresh is no change to a watch", Clause: "A refresh is not a change.", check: watched(aRefreshIsNoChangeToAWatch)},
	{Name: "a slow reader sees the last state", Clause: yieldsEach, check: aSlowReaderSeesTheLastState},
	{Name: "a slow reader is told the newest state, not each", Clause: yieldsEach, check: aSlowReaderIsToldTheNewestState},
	{Name: "a watch that begins during a change does not miss it", Clause: yieldsEach, check: watched(aWatchThatBeginsDuringAChangeDoesNotMissIt)},
	{Name: "a watch never goes back", Clause: yieldsEach + " Reads are linearizable.", check: watched(aWatchNeverGoesBack)},
}

func aWatchYieldsThePresentStateFirst(t *trial, watch view) {
	name := t.name()
	require.True(t, watch(t, t.s, name).next().vacant(), "a vacant safe")
	rec := t.create(t.s, name, t.signed("v"))
	require.Equal(t, sighting{rec: rec}, watch(t, t.s, name).next())
	rec = t.publish(t.s, name, rec, "w")
	require.Equal(t, sighting{rec: rec}, watch(t, t.open(), name).next())
	t.delete(t.s, name, rec)
	require.True(t, watch(t, t.s, name).next().vacant(), "a safe that was emptied")
}

func aWatchYieldsEachLaterState(t *trial, watch view) {
	name := t.name()
	w := watch(t, t.open(), name)
	require.True(t, w.next().vacant())
	for range 3 {
		rec := t.succeed(t.s, name, t.signed("v"))
		w.sees(rec)
		for _, value := range []string{"one", "", "two"} {
			rec = t.publish(t.s, name, rec, value)
			w.sees(rec)
		}
		t.delete(t.s, name, rec)
		w.seesVacancy()
	}
}

func aWatchYieldsAHandOver(t *trial) {
	n := t.succession(ample)
	w := t.watch(n.s, n.lead)
	w.sees(n.leader)
	rec := n.handOver()
	w.sees(rec)
	rec = t.swap(t.s, n.lead, rec, t.signed("taken over"))
	w.sees(rec)
	t.delete(t.s, n.lead, rec)
	w.seesVacancy()
}

func aWatchYieldsARemoval(t *trial, watch view) {
	name, rec := t.held()
	w := watch(t, t.open(), name)
	w.sees(rec)
	t.b.Remove(t, name)
	w.seesVacancy()
	w.sees(t.succeed(t.s, name, t.signed("the next")))
}

func aWatchSeesTheSuccessorOfAnExpiredRecord(t *trial) {
	name, start := t.name(), time.Now()
	rec := t.create(t.s, name, t.mortal("the old"))
	w := t.watch(t.open(), name)
	if first := w.next(); time.Since(start) < rec.TTL { // else it may have faded before the watch began
		require.Equal(t, sighting{rec: rec}, first)
	}
	t.fades(name, rec, start, nil)
	rec = t.succeed(t.s, name, t.signed("the next")) // a mortal one may come and go between two looks
	w.sees(rec)
	t.delete(t.s, name, rec)
	w.seesVacancy()
}

func aRefreshIsNoChangeToAWatch(t *trial, watch view) {
	name, rec := t.held()
	w := watch(t, t.open(), name)
	w.sees(rec)
	for range 5 {
		t.refresh(t.s, name, rec)
		w.staysQuiet(t.ttl / 5)
	}
	t.delete(t.s, name, rec)
	w.seesVacancy()
}

// The reader takes the first state, and is busy while the others come.
func aSlowReaderSeesTheLastState(t *trial) {
	const changes = 30
	name, rec := t.held()
	yields := 0
	for got, err := range t.open().Watch(t.ctx, name) {
		require.NoError(t, err)
		yields++
		require.LessOrEqual(t, yields, changes+1, "more states than changes")
		if yields > 1 && got == rec {
			return
		}
		if yields == 1 {
			require.Equal(t, rec, got)
			for range changes {
				rec = t.publish(t.s, name, rec, rec.Value+"+")
			}
			time.Sleep(t.ttl / 5)
		}
	}
	require.Fail(t, "the watch ended by itself")
}

// The watch has told of a change, so it is well under way, when its reader is busy
// for a while. A few states may still be on their way when the reader goes on.
func aSlowReaderIsToldTheNewestState(t *trial) {
	const changes, enough = 40, 10
	name, rec := t.held()
	yields := 0
	for got, err := range t.open().Watch(t.ctx, name) {
		require.NoError(t, err)
		switch yields++; yields {
		case 1:
			rec = t.publish(t.s, name, rec, "begun")
		case 2:
			require.Equal(t, rec, got)
			for range changes {
				rec = t.publish(t.s, name, rec, rec.Value+"+")
				time.Sleep(t.ttl / 1000) // so that they come one by one
			}
			time.Sleep(t.ttl / 5)
		default:
			if got == rec {
				return
			}
			require.Less(t, yields, 2+enough, "states of %d that came while the reader was busy", changes)
			time.Sleep(t.ttl / 20)
		}
	}
	require.Fail(t, "the watch ended by itself")
}

func aWatchNeverGoesBack(t *trial, watch view) {
	const changes = 100
	name := t.name()
	w := watch(t, t.open(), name)
	order := map[kv.Record]int{}
	for i := 0; i < changes; {
		rec := t.succeed(t.s, name, t.signed("v"))
		order[rec], i = i, i+1
		rec = t.publish(t.s, name, rec, "w")
		order[rec], i = i, i+1
		time.Sleep(t.ttl / 1000)
		rec = t.swap(t.s, name, rec, t.signed("x"))
		order[rec], i = i, i+1
		t.delete(t.s, name, rec)
		time.Sleep(t.ttl / 1000)
	}
	end := t.succeed(t.s, name, t.signed("the last"))
	order[end] = changes + 1
	for at := -1; at < changes+1; {
		o := w.next()
		if o.vacant() {
			continue
		}
		i, known := order[o.rec]
		require.True(t, known, "a state that never was: %+v", o.rec)
		require.Greater(t, i, at, "the watch went back, or yielded a state twice: %+v", o.rec)
		at = i
	}
}

// The change comes between the watch's first look and what it does to learn of
// changes, at one time or another.
func aWatchThatBeginsDuringAChangeDoesNotMissIt(t *trial, watch view) {
	other := t.open()
	for i := range 20 {
		name := t.name()
		w := watch(t, other, name)
		time.Sleep(time.Duration(i) * t.ttl / 5000)
		rec := t.create(t.s, name, t.signed("v"))
		w.sees(rec)
		t.delete(t.s, name, rec)
		w.seesVacancy()
		w.end()
	}
}
