package machine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/machine"
	"github.com/electkv/election/kv"
)

// TestALookThatLeftBeforeThePlaceWentProvesNothing has an heir look at the leader's key, be
// handed over to, and withdraw before it learns what it has seen.
func TestALookThatLeftBeforeThePlaceWentProvesNothing(t *testing.T) {
	w := newWorld(false, 2, 0, nil)
	w.faults = 9
	w.play("0: create leader", "1: create leader", "1: create heir", "tick", "tick", "0: refresh leader", "1: refresh heir",
		"1: its watches are slow", "1: get leader, the answer is slow", "0: release", "0: hand over leader",
		"1: withdraw", "1: delete heir", "1: the answer to get leader arrives", "1: get leader", "1: delete leader")
	require.Equal(t, kv.Record{}, w.store.rec[machine.Lead])
}

// A leader sees the heir, whose place ends then, and writes the heir's signature all the same.
func TestAnHeirThatIsNoneAnyMoreAwaitsAHandOverInTwoSteps(t *testing.T) {
	for what, ends := range map[string]func(*world){
		"it is displaced": func(w *world) {
			w.store.put(machine.Place, kv.Record{Signature: "2/n0.1", TTL: 6}, w.now)
			w.play("tick", "tick", "1: get leader", "1: refresh heir")
		},
		"it withdraws": func(w *world) { w.play("1: withdraw", "1: delete heir") },
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(false, 2, 9, func(cfg *machine.Config) { cfg.Steps = true })
			w.play("0: create leader", "1: create leader", "1: create heir", "0: release", "0: vacate leader", "0: look at the heir")
			w.nodes[0].sent[machine.Lead].Within = 9
			ends(w)
			w.play("1: get leader", "0: hand over leader", "tick")
			if w.nodes[1].sent[machine.Lead].Op == machine.NoOp {
				w.play("tick")
			}
			w.play("1: get leader", "1: delete leader")
			require.Equal(t, kv.Record{}, w.store.rec[machine.Lead])
		})
	}
}

// A claim that had no answer is looked for until the last copy of it is as old as a TTL.
func TestAClaimIsNotForgottenBeforeItsLastCopy(t *testing.T) {
	w := newWorld(false, 1, 9, nil)
	again := time.Duration(0)
	for again == 0 {
		if w.nodes[0].sent[machine.Lead].Op == machine.NoOp {
			w.play("tick")
			continue
		}
		again, w.late = w.nodes[0].since[machine.Lead], [3]copyOf{}
		w.play("0: create leader, late")
	}
	w.store.put(machine.Lead, kv.Record{Signature: "x/n0.1", TTL: 100}, w.now)
	w.store.put(machine.Place, kv.Record{Signature: "y/n0.1", TTL: 100}, w.now)
	lead := &w.nodes[0].c.Lead
	for w.show(); w.now <= again+timing.TTL; w.play("tick") {
		w.settle()
		require.Equal(t, machine.Possible, lead.Remains.Kind, "at %d", w.now)
	}
	for range timing.TTL {
		w.settle()
		w.play("tick")
	}
	require.Equal(t, machine.Nothing, lead.Remains.Kind)
}
