//go:build linux

package interop

import (
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/test/interop/coexist"
)

// A director troubles a fleet, at random. It leaves one process of each kind
// alone at any time, so that each kind can always come.
type director struct {
	*fleet
	chance *rand.Rand
	busy   map[bool]bool // a kind, of which one is troubled already
	mu     sync.Mutex
	all    sync.WaitGroup
}

// direct troubles the fleet for a stretch. What it does follows from the seed
// and the test's name; whom it hits, from who holds then.
func (f *fleet) direct(lasts time.Duration, over func() bool) {
	h := fnv.New64a()
	h.Write([]byte(f.t.Name()))
	d := &director{fleet: f, chance: rand.New(rand.NewPCG(*seed, h.Sum64())), busy: map[bool]bool{}}
	defer d.all.Wait()
	for until := boottime.Now() + lasts; boottime.Now() < until && !over(); {
		time.Sleep(d.between(200*time.Millisecond, 700*time.Millisecond))
		d.strike()
	}
}

func (d *director) between(least, most time.Duration) time.Duration {
	return least + time.Duration(d.chance.Int64N(int64(most-least)))
}

// strike does one thing to somebody.
func (d *director) strike() {
	old := d.chance.IntN(2) == 0 || d.spared
	who := []string{"old-1", "old-2"}
	if !old {
		who = []string{"new-1", "new-2"}
	}
	victim := who[d.chance.IntN(2)]
	holds, atHolder := d.holder(old)
	if d.chance.IntN(4) > 0 && atHolder { // most of what strikes strikes who holds
		victim = holds
	}
	acts := []string{"resign", "resign", "resign", "kill", "kill", "stop", "stop", "cut", "black hole"}
	act := acts[d.chance.IntN(len(acts))]
	short := d.between(d.ttl/4, d.ttl)
	long := d.between(d.ttl*5/4, d.ttl*9/4)
	a := d.actor(victim)
	if act == "resign" {
		a.tell("resign")
		return
	}
	switch {
	case old && d.calm && act != "stop":
		return
	case old && d.operated && act != "stop" && act != "kill":
		return // what it cannot give back while it is cut off stays for a minute
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.busy[old] {
		return
	}
	d.busy[old] = true
	d.all.Go(func() {
		switch act {
		case "kill":
			d.kill(a, short)
		case "stop":
			d.sleep(a, long)
		case "cut":
			d.cut(a, "is cut off", (*testenv.Proxy).Cut, long)
		case "black hole":
			d.cut(a, "is in a black hole", (*testenv.Proxy).BlackHole, long)
		}
		time.Sleep(d.recovers)
		d.mu.Lock()
		defer d.mu.Unlock()
		d.busy[old] = false
	})
}

// kill kills a process, and starts it again after a while.
func (f *fleet) kill(a *actor, lasts time.Duration) {
	f.note(history.Event{Kind: history.Killed, Who: a.part.Who})
	require.NoError(f.t, a.kill())
	if f.operated && coexist.IsOld(a.part.Who) {
		require.NoError(f.t, f.revoke(a.part.Who))
	}
	time.Sleep(lasts)
	require.NoError(f.t, a.start(f.note))
}

// sleep puts a process to sleep for a while.
func (f *fleet) sleep(a *actor, lasts time.Duration) {
	f.note(history.Event{Kind: history.Stopped, Who: a.part.Who})
	require.NoError(f.t, a.signal(syscall.SIGSTOP))
	time.Sleep(lasts)
	f.note(history.Event{Kind: history.Woken, Who: a.part.Who})
	require.NoError(f.t, a.signal(syscall.SIGCONT))
}

// cut spoils the link of a process for a while.
func (f *fleet) cut(a *actor, text string, spoil func(*testenv.Proxy), lasts time.Duration) {
	f.note(history.Event{Kind: history.Fault, Who: a.part.Who, Text: text})
	spoil(a.link)
	time.Sleep(lasts)
	f.note(history.Event{Kind: history.Healed, Who: a.part.Who, Text: "is connected again"})
	a.link.Heal()
}

// patience is how long a process may take to end.
const patience = time.Minute

// close ends the fleet. Those of ours must end by themselves.
func (f *fleet) close() {
	for _, a := range f.actors {
		a.tell("close")
	}
	for _, a := range f.actors {
		err := a.end(patience)
		if a.part.Lock == ours {
			require.NoError(f.t, err)
		} else if err != nil {
			f.t.Log(err)
		}
	}
}
