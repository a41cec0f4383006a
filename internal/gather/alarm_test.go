package gather_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/gather"
)

// Rings are the alarms of a test, and when they rang.
type rings struct {
	begun time.Time
	mu    sync.Mutex
	of    map[string][]time.Duration
}

func newRings() *rings { return &rings{begun: time.Now(), of: make(map[string][]time.Duration)} }

// alarm returns an alarm that notes when it rings.
func (r *rings) alarm(name string) *gather.Alarm {
	return &gather.Alarm{Ring: func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.of[name] = append(r.of[name], time.Since(r.begun))
	}}
}

// by returns what has rung by a time.
func (r *rings) by(at time.Duration) map[string][]time.Duration {
	time.Sleep(at - time.Since(r.begun))
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of
}

type times = map[string][]time.Duration

// soon is how long after the time of its first alarm a bell rings.
const soon = window * 3 / 4

func TestAlarmsOfOneWindowRingTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, r := &clerk{}, newRings()
		r.alarm("first").Set(c, window, time.Second)
		r.alarm("later").Set(c, window, time.Second+soon)
		r.alarm("sooner").Set(c, window, time.Second+soon-window)
		r.alarm("too soon").Set(c, window, time.Second+soon-window-1)
		r.alarm("too late").Set(c, window, time.Second+soon+1)
		r.alarm("another store's").Set(&clerk{}, window, time.Second+1)
		r.alarm("another window's").Set(c, 2*window, time.Second+2)
		require.Equal(t, times{
			"first":            {time.Second + soon},
			"later":            {time.Second + soon},
			"sooner":           {time.Second + soon},
			"too soon":         {time.Second + soon - window - 1 + soon},
			"too late":         {time.Second + soon + 1 + soon},
			"another store's":  {time.Second + 1 + soon},
			"another window's": {time.Second + 2 + 2*soon},
		}, r.by(time.Minute))
	})
}

func TestAnAlarmRingsWhenItWasSetToLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, r := &clerk{}, newRings()
		stopped, later, sooner, same := r.alarm("stopped"), r.alarm("later"), r.alarm("sooner"), r.alarm("same")
		for _, a := range []*gather.Alarm{stopped, later, sooner, same} {
			a.Set(c, window, time.Second)
		}
		stopped.Stop()
		stopped.Stop()
		later.Set(c, window, 2*time.Second)
		sooner.Set(c, window, time.Second/2)
		same.Set(c, window, time.Second+window/2)
		require.Equal(t, times{
			"sooner": {time.Second/2 + soon},
			"same":   {time.Second + soon},
			"later":  {2*time.Second + soon},
		}, r.by(time.Minute))
		same.Set(c, window, time.Second)
		require.Equal(t, []time.Duration{time.Second + soon, time.Minute + time.Second + soon}, r.by(2 * time.Minute)["same"])
	})
}

// The alarms have waited for a window already, and what comes later has one of its own.
func TestTheRefreshesOfABellLeaveAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, begun, pleas := &clerk{}, time.Now(), make(chan plea, 2)
		for _, name := range []string{"a", "b"} {
			alarm := &gather.Alarm{Ring: func() { pleas <- ask(c, name) }}
			alarm.Set(c, window, time.Second)
		}
		for range 2 {
			v := (<-pleas).once(t)
			require.NoError(t, v.Err)
			require.Equal(t, time.Second+soon, v.at.Sub(begun))
		}
		require.Len(t, c.calls(), 1)
		require.ElementsMatch(t, []string{"a", "b"}, c.calls()[0])
	})
}

// A bell whose refreshes are not answered holds up no later one.
func TestABellThatIsNotAnsweredDelaysNoLaterOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, r, pleas := &clerk{refresh: hang}, newRings(), make(chan plea, 1)
		hangs := &gather.Alarm{Ring: func() { pleas <- ask(c, "a") }}
		hangs.Set(c, window, time.Second)
		r.alarm("later").Set(c, window, time.Second+patience/2)
		require.Equal(t, times{"later": {time.Second + patience/2 + soon}}, r.by(time.Minute))
		require.Error(t, (<-pleas).once(t).Err)
	})
}

func TestAlarmsAreSetAndStoppedWhileBellsRing(t *testing.T) {
	c, r := &clerk{}, newRings()
	var crowd sync.WaitGroup
	for range 100 {
		crowd.Go(func() {
			a := r.alarm("any")
			for i := range 200 {
				a.Set(c, time.Millisecond, time.Duration(i%5)*time.Millisecond)
				if i%3 == 0 {
					time.Sleep(time.Duration(i%4) * time.Millisecond)
				}
				if i%2 == 0 {
					a.Stop()
				}
			}
			a.Stop()
		})
	}
	crowd.Wait()
	require.True(t, gather.Silent())
}
