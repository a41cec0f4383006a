package election

import (
	"reflect"
	"sync"
	"time"

	"github.com/electkv/election/internal/machine"
)

// A vigil checks once per tick whether the system was suspended, and if so, has the terms of one
// store read the clock: a term's own timer stands still during a suspend, but its trust runs on. A
// vigil begins with the first of these terms and ends with the last. Terms depend on it for
// nothing else.
type vigil struct {
	rota   rota
	terms  map[*Term]struct{}
	timer  *time.Timer
	clock  clock         // of one of them
	asleep time.Duration // how long the system was suspended before they last looked, from some moment on
}

// unnoticed is how long the system may have been suspended in all without a look at the clock.
const unnoticed = time.Millisecond

// A rota is the key by which terms share a vigil.
type rota struct {
	of   any // their store; a term of a store that cannot be compared keeps one of its own
	tick time.Duration
}

// The vigils that are kept, and all that is in them. There are none while nobody leads.
var (
	vigilMu sync.Mutex              //nolint:gochecknoglobals // candidates that share a store know nothing of each other
	vigils  = make(map[rota]*vigil) //nolint:gochecknoglobals // see vigilMu
)

// keepVigil adds a term to its store's vigil, until leave is called.
func keepVigil(t *Term) *vigil {
	r := rota{t.c.store, t.c.pace.tick}
	if !reflect.ValueOf(t.c.store).Comparable() {
		r.of = t
	}
	vigilMu.Lock()
	defer vigilMu.Unlock()
	v := vigils[r]
	if v == nil {
		v = &vigil{rota: r, terms: make(map[*Term]struct{}), clock: t.c.clock}
		v.asleep = asleepBy(v.clock.now())
		v.timer = time.AfterFunc(r.tick, v.look)
		vigils[r] = v
	}
	v.terms[t] = struct{}{}
	return v
}

// look has all terms read the clock if the system was suspended, and checks again after a tick.
func (v *vigil) look() {
	vigilMu.Lock()
	defer vigilMu.Unlock()
	if len(v.terms) == 0 {
		return
	}
	now := v.clock.now()
	asleep := asleepBy(now)
	if asleep > v.asleep+unnoticed {
		for t := range v.terms {
			t.look(now.Boot) // to read that clock is a call of the kernel
		}
		v.asleep = min(asleep, asleepBy(v.clock.now())) // the host may have been slow between the two clocks
	}
	v.asleep = min(v.asleep, asleep) // what is unnoticed adds up
	v.timer.Reset(v.rota.tick)
}

// leave takes a term away.
func (v *vigil) leave(t *Term) {
	vigilMu.Lock()
	defer vigilMu.Unlock()
	if delete(v.terms, t); len(v.terms) == 0 {
		v.timer.Stop()
		delete(vigils, v.rota)
	}
}

// asleepBy returns for how long the system was suspended before an instant, counted from some
// moment on.
func asleepBy(now machine.Instant) time.Duration { return now.Boot - now.Mono }
