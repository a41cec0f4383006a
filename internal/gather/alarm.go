package gather

import (
	"slices"
	"sync"
	"time"

	"github.com/electkv/election/kv"
)

// An Alarm calls an election when its next refresh is due, together with others: alarms of one
// store whose times lie within one window ring one after the other, on one goroutine, at the
// end of it. The round that their refreshes open begins then, without waiting for more.
//
// The zero Alarm is not set. One that is stopped, or set again, while it rings may ring once more.
type Alarm struct {
	Ring func() // waits for nothing; not changed once the alarm was set

	bell *bell // nil if the alarm is not set
	seat int   // among the bell's alarms
}

// A bell holds the alarms of one window.
type bell struct {
	class
	end    time.Time // of the window
	timer  *time.Timer
	alarms []*Alarm
}

// The bells that are to ring, in the order of their ends. There are none while no alarm is set.
var (
	bellMu sync.Mutex                //nolint:gochecknoglobals // elections that share a store know nothing of each other
	bells  = make(map[class][]*bell) //nolint:gochecknoglobals // see bellMu
)

// Set has the alarm ring after a time, and up to a window later.
func (a *Alarm) Set(store kv.Batch, window, after time.Duration) {
	due := time.Now().Add(after)
	latest := due.Add(window)
	c := class{store, window}
	bellMu.Lock()
	defer bellMu.Unlock()
	if b := a.bell; b != nil && b.class == c && !b.end.Before(due) && !b.end.After(latest) {
		return
	}
	a.leave()
	at, _ := slices.BinarySearchFunc(bells[c], due, func(b *bell, due time.Time) int { return b.end.Compare(due) })
	if at == len(bells[c]) || bells[c][at].end.After(latest) {
		// Those that come later and are due a little sooner have room for it, too.
		b := &bell{class: c, end: due.Add(window * 3 / 4)}
		b.timer = time.AfterFunc(after+window*3/4, b.ring)
		bells[c] = slices.Insert(bells[c], at, b)
	}
	a.bell = bells[c][at]
	a.seat = len(a.bell.alarms)
	a.bell.alarms = append(a.bell.alarms, a)
}

// Stop has the alarm not ring, if it is set.
func (a *Alarm) Stop() {
	bellMu.Lock()
	defer bellMu.Unlock()
	a.leave()
}

// leave takes the alarm from its bell. It is called with bellMu held.
func (a *Alarm) leave() {
	b := a.bell
	if b == nil {
		return
	}
	end := len(b.alarms) - 1
	last := b.alarms[end]
	b.alarms[a.seat], last.seat = last, a.seat
	b.alarms[end] = nil
	a.bell, b.alarms = nil, b.alarms[:end]
	if end == 0 {
		b.timer.Stop()
		b.leave()
	}
}

// leave takes the bell from those that are to ring. It is called with bellMu held.
func (b *bell) leave() {
	others := slices.DeleteFunc(bells[b.class], func(one *bell) bool { return one == b })
	if len(others) == 0 {
		delete(bells, b.class)
		return
	}
	bells[b.class] = others
}

// ring rings all alarms of the bell, and begins the round that they have opened.
func (b *bell) ring() {
	for _, a := range b.silence() {
		a.Ring()
	}
	mu.Lock()
	r := open[b.class]
	begins := r != nil && r.window.Stop()
	mu.Unlock()
	if begins {
		r.run()
	}
}

// silence takes the bell from those that are to ring, and returns its alarms, which are not set
// any more.
func (b *bell) silence() []*Alarm {
	bellMu.Lock()
	defer bellMu.Unlock()
	b.leave()
	alarms := b.alarms
	b.alarms = nil
	for _, a := range alarms {
		a.bell = nil
	}
	return alarms
}
