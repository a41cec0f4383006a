package kvtest

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

const (
	followsAWatch = "Follow calls tell with what a loop over Store.Watch of the safe called name would see, in the same order, until stop is called or an error other than ErrVacant has ended it."
	oneCall       = "Follow calls tell from other goroutines, one call at a time for each Follow. While a call lasts, later states are merged into the newest."
	stopIsTheEnd  = "When stop returns, tell is not running and will not be called again, and everything that was started for this Follow alone has ended. Stop may be called more than once."
	followIsFree  = "While nothing changes, a follow of a safe that others follow too costs no goroutine of its own."
)

// The cases of a kv.Board. A store that is none skips them.
var boardCases = []Case{
	{Name: "a follow tells the present state first", Clause: followsAWatch + " " + yieldsEach, check: followed(aWatchYieldsThePresentStateFirst)},
	{Name: "a follow tells each later state", Clause: followsAWatch + " " + yieldsEach, check: followed(aWatchYieldsEachLaterState)},
	{Name: "a follow tells a removal by an operator", Clause: followsAWatch + " " + yieldsEach, check: followed(aWatchYieldsARemoval), needs: remove},
	{Name: "a follow alone sees a record fade, in time and not early", Clause: followsAWatch + " " + noHelp + " " + neverEarly, check: followed(aWatchAloneSeesARecordFade)},
	{Name: "a refresh is no change to a follow", Clause: followsAWatch + " A refresh is not a change.", check: followed(aRefreshIsNoChangeToAWatch)},
	{Name: "a follow that begins during a change does not miss it", Clause: followsAWatch + " " + yieldsEach, check: followed(aWatchThatBeginsDuringAChangeDoesNotMissIt)},
	{Name: "a follow never goes back", Clause: followsAWatch, check: followed(aWatchNeverGoesBack)},
	{Name: "a follow tells why a name is invalid, and nothing else", Clause: followsAWatch + " " + invalid, check: followed(aFollowTellsWhyANameIsInvalid)},
	{Name: "a follow tells a slow one the newest state, one call at a time", Clause: oneCall, check: followed(aFollowTellsASlowOneTheNewestState)},
	{Name: "a follow tells nothing after its stop", Clause: stopIsTheEnd, check: followed(aFollowTellsNothingAfterItsStop)},
	{Name: "the stop of a follow waits for a call that is under way", Clause: stopIsTheEnd, check: followed(theStopOfAFollowWaitsForACall)},
	{Name: "a follow may be stopped more than once", Clause: stopIsTheEnd, check: followed(aFollowMayBeStoppedMoreThanOnce)},
	{Name: "a follow that is stopped does not end another", Clause: stopIsTheEnd, check: followed(aWatchThatEndsDoesNotEndAnother)},
	{Name: "many follows cost few goroutines", Clause: followIsFree, check: followed(manyFollowsCostFewGoroutines), alone: true},
	{Name: "follows leave no goroutines behind", Clause: stopIsTheEnd, check: followed(followsLeaveNoGoroutinesBehind), alone: true},
}

// followed makes a check of a view one of a follow.
func followed(check func(*trial, view)) func(*trial) {
	return func(t *trial) {
		if _, ok := t.s.(kv.Board); !ok {
			t.Skip("the store is no board")
		}
		check(t, (*trial).follow)
	}
}

func aFollowTellsWhyANameIsInvalid(t *trial, follow view) {
	w := follow(t, t.s, "")
	o := w.anything()
	require.ErrorIs(t, o.err, kv.ErrInvalid)
	require.Zero(t, o.rec, "what comes with an error")
	w.staysQuiet(t.ttl / 2)
}

// The follow has told of a change, so it is well under way, when a call lasts for a while.
func aFollowTellsASlowOneTheNewestState(t *trial, _ view) {
	const changes, enough = 40, 10
	name, rec := t.held()
	var calls atomic.Int32
	slow := make(chan struct{})
	goOn := sync.OnceFunc(func() { close(slow) })
	f := t.follower(t.open(), name, func() {
		if calls.Add(1) == 2 {
			<-slow
		}
	})
	t.Cleanup(goOn)
	require.Equal(t, rec, f.next().rec)
	rec = t.publish(t.s, name, rec, "begun")
	require.Equal(t, rec, f.next().rec)
	for range changes {
		rec = t.publish(t.s, name, rec, rec.Value+"+")
		time.Sleep(t.ttl / 1000) // so that they come one by one
	}
	time.Sleep(t.ttl / 5)
	require.Empty(t, f.told(), "calls while another is under way")
	goOn()
	for n := 1; f.next().rec != rec; n++ {
		require.Less(t, n, enough, "states of %d that came while the follower was busy", changes)
	}
	f.end()
	require.False(t, f.jostled.Load(), "a call has begun while another was under way")
}

// Another follow of the same safe shows that there was something to tell.
func aFollowTellsNothingAfterItsStop(t *trial, follow view) {
	const follows = 20
	name, rec := t.held()
	other := follow(t, t.s, name)
	other.sees(rec)
	var gone []*follower
	for i := range follows {
		f := t.follower(t.s, name, func() {})
		if i%2 == 0 {
			f.sees(rec)
		}
		time.Sleep(time.Duration(i) * t.ttl / 5000)
		rec = t.publish(t.s, name, rec, rec.Value+"+")
		f.end()
		gone = append(gone, f)
		other.sees(rec)
	}
	other.sees(t.publish(t.s, name, rec, "the last"))
	time.Sleep(t.ttl / 5)
	for i, f := range gone {
		require.False(t, f.late.Load(), "follow %d was told something after its stop had returned", i)
	}
}

func theStopOfAFollowWaitsForACall(t *trial, _ view) {
	name, rec := t.held()
	slow := make(chan struct{})
	goOn := sync.OnceFunc(func() { close(slow) })
	f := t.follower(t.s, name, func() { <-slow })
	t.Cleanup(goOn)
	require.Equal(t, rec, f.next().rec)
	f.cancel()
	time.Sleep(t.ttl / 5)
	select {
	case <-f.done:
		require.Fail(t, "stop has returned during a call")
	default:
	}
	goOn()
	f.end()
	require.False(t, f.late.Load(), "a call was under way when stop had returned")
}

// Each stop after the first is about nobody, be it at the same time or later.
func aFollowMayBeStoppedMoreThanOnce(t *trial, follow view) {
	name, rec := t.held()
	f := t.follower(t.s, name, func() {})
	one, two := follow(t, t.s, name), follow(t, t.s, name)
	for _, w := range []*watcher{f.watcher, one, two} {
		w.sees(rec)
	}
	for range 3 {
		over := make(chan struct{})
		go func() {
			defer close(over)
			var crowd sync.WaitGroup
			for range 3 {
				crowd.Go(f.stop)
			}
			crowd.Wait()
		}()
		timer := time.NewTimer(patience)
		select {
		case <-over:
			timer.Stop()
		case <-timer.C:
			require.FailNow(t, "a stop does not return")
		}
	}
	rec = t.publish(t.s, name, rec, "changed")
	one.sees(rec)
	two.sees(rec)
	f.end()
}

// Clients keep a few goroutines for connections that they keep open.
const manyFollows, fewGoroutines = 200, 20

func manyFollowsCostFewGoroutines(t *trial, follow view) {
	name := t.name()
	follow(t, t.s, name).seesVacancy()
	before := goroutines()
	var crowd []*watcher
	for range manyFollows {
		w := follow(t, t.s, name)
		w.seesVacancy()
		crowd = append(crowd, w)
	}
	t.settles(before, fewGoroutines)
	rec := t.create(t.s, name, t.signed("v"))
	for _, w := range crowd {
		w.sees(rec)
	}
}

func followsLeaveNoGoroutinesBehind(t *trial, follow view) {
	follow(t, t.s, t.name()).seesVacancy()
	before := goroutines()
	var crowd []*watcher
	for range manyFollows { // one after the other, so that no client needs many connections
		w := follow(t, t.s, t.name())
		w.seesVacancy()
		crowd = append(crowd, w)
	}
	for _, w := range crowd {
		w.end()
	}
	name, _ := t.held()
	for range manyFollows {
		follow(t, t.s, name).end()
	}
	t.settles(before, fewGoroutines)
}
