//go:build linux

package faults

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// soakNumber is the number of the soak in the table of docs/reliability.md.
const soakNumber = 54

// TestSoak plays random faults for -faults.soak, in stretches, each of which is
// judged by itself. A stretch follows from the seed and its number alone, so
// that one that failed is played again by -faults.stretch. It is selected by
// -faults.soak only; see TestMain.
func TestSoak(t *testing.T) {
	require.Positive(t, *soak, "for how long: -faults.soak=10m")
	i := slices.IndexFunc(columns(), func(c column) bool { return c.name == *only })
	require.GreaterOrEqual(t, i, 0, "on which store: -faults.store=%q is none", *only)
	c := columns()[i]
	until := time.Now().Add(*soak)
	for n := *stretch; n == *stretch || time.Now().Before(until); n++ {
		ok := t.Run(fmt.Sprintf("%s/seed %d, stretch %d", c.name, *seed, n), func(t *testing.T) {
			play(t, c, soakRow(c, n), nil)
		})
		if !ok {
			t.Fatalf("again: go test ./test/faults -faults.soak=1s -faults.store=%s -faults.seed=%d -faults.stretch=%d", c.name, *seed, n)
		}
	}
}

func soakRow(c column, n int) row {
	return row{
		number: soakNumber, letter: fmt.Sprintf("-%d", n), fault: "random faults", own: true, candidates: crew,
		must:     []oracle.Rule{oracle.LeaderInTime},
		requests: 2 * usual, // what is put right makes it begin anew
		play: func(s *stage) {
			s.alive()
			d := &director{stage: s, busy: map[string]bool{}}
			d.perform(plan(c, s.ttl, *seed, n))
			s.due("", s.recovery(), "all was put right")
			s.leader()
			s.pass(s.ttl)
		},
	}
}

// A director follows a schedule.
type director struct {
	*stage
	busy   map[string]bool // what something is wrong with already
	moment []moment        // what is to be done next, in order
	begin  time.Time
}

// A moment is when something is done.
type moment struct {
	at time.Duration
	do func()
}

// perform begins and ends each step when it is due. A step whose target has
// something wrong with it already is left out.
func (d *director) perform(steps []step) {
	d.begin = time.Now()
	for _, p := range steps {
		d.t.Log(p)
		d.later(p.at, func() { d.strike(p) })
	}
	for len(d.moment) > 0 {
		next := d.moment[0]
		d.moment = d.moment[1:]
		d.pass(time.Until(d.begin.Add(next.at)))
		next.do()
	}
}

func (d *director) later(at time.Duration, do func()) {
	d.moment = append(d.moment, moment{at, do})
	slices.SortStableFunc(d.moment, func(a, b moment) int { return cmp.Compare(a.at, b.at) })
}

// strike begins a step, and sees to its end.
func (d *director) strike(p step) {
	what, begin := d.target(p)
	if begin == nil || d.busy[what] {
		return
	}
	d.busy[what] = true
	end := begin()
	d.later(time.Since(d.begin)+p.lasts, func() {
		end()
		delete(d.busy, what)
	})
}

// target returns what a step is done to, and how it begins; begin returns how it
// ends.
func (d *director) target(p step) (what string, begin func() (end func())) {
	switch p.act {
	case "pause server", "restart server", "kill server":
		node := d.nodes[max(p.target, 0)%len(d.nodes)]
		if p.target == leads {
			if d.busy["server"] { // nobody may be able to say who it is
				return "server", nil
			}
			node = d.servers.leader(d.name)
		}
		return "server", func() func() { return d.harm(p.act, node) }
	case "erase":
		if d.busy["server"] {
			return "record", nil
		}
		return "record", func() func() {
			d.depose()
			return func() {}
		}
	}
	who := d.names[max(p.target, 0)%len(d.names)]
	if p.target == leads {
		if term, ok := d.leads(); ok {
			who = term.Who
		}
	}
	return who, func() func() { return d.trouble(p, who) }
}

// depose erases the record, if there is one. Whoever has it may be asleep, or cut
// off: it believes that it leads until its trust runs out.
func (d *director) depose() {
	rec, err := d.store.Get(d.t.Context(), d.name)
	if errors.Is(err, kv.ErrVacant) {
		return
	}
	require.NoError(d.t, err)
	d.note(history.Event{Kind: history.Interfered, Token: rec.Token, Within: d.ttl, Text: "the record is deleted"})
	d.erase()
}

// harm does something to a server.
func (d *director) harm(act string, node *testenv.Server) (end func()) {
	d.fault(act)
	switch act {
	case "pause server":
		node.Pause()
		return func() {
			node.Continue()
			d.healed("the server goes on")
		}
	case "kill server":
		node.Kill()
		return func() {
			node.Restart()
			d.healed("the server serves again")
		}
	}
	node.Restart()
	d.healed("the server serves again")
	return func() {}
}

// trouble does something to a candidate, or to its link.
func (d *director) trouble(p step, who string) (end func()) {
	heal := func() { d.heal(who) }
	again := func() { d.again(who) }
	switch p.act {
	case "kill":
		d.kill(who)
		return again
	case "close":
		d.tell(who, "close")
		return again
	case "stop":
		d.stop(who)
		return func() { d.wake(who) }
	case "resign":
		if term, ok := d.leads(); ok && term.Who == who {
			d.tell(who, "resign")
		}
		return func() {}
	case "lose create", "lose refresh", "lose delete":
		op := p.act[len("lose "):]
		d.note(history.Event{Kind: history.Fault, Who: who, Text: "loses the answer to a " + op})
		d.tell(who, "fault "+op+" dropreply 1")
		return func() { d.tell(who, "heal") }
	case "cut":
		d.cut(who)
	case "black hole":
		d.blackHole(who)
	case "cut requests":
		d.cutRequests(who)
	case "cut replies":
		d.cutReplies(who)
	case "slow":
		d.slow(p.delay, who)
	case "late answers":
		d.links("is answered late", func(link *testenv.Proxy) { link.DelayReplies(p.delay) }, who)
	}
	return heal
}

// TestAScheduleFollowsFromItsSeed is what makes a soak repeatable.
func TestAScheduleFollowsFromItsSeed(t *testing.T) {
	for _, c := range columns() {
		one := plan(c, c.ttl, 7, 3)
		require.Greater(t, len(one), 30)
		require.Equal(t, one, plan(c, c.ttl, 7, 3))
		require.NotEqual(t, one, plan(c, c.ttl, 7, 4))
		require.NotEqual(t, one, plan(c, c.ttl, 8, 3))
	}
}
