package invitation

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMessagesThatNobodySendsAreRefused(t *testing.T) {
	a, b, long := Number{"a", 1, 1}, Number{"b", 1, 1}, Number{ID(strings.Repeat("x", MaxID+1)), 1, 1}
	var crowd []ID
	for i := range MaxMembers + 1 {
		crowd = append(crowd, ID(fmt.Sprintf("a%03d", i)))
	}
	for says, m := range map[string]Message{
		`"a" speaks for group b/1.1`:     Probe{b, 1},
		`which "b" leads`:                Heartbeat{Number: b},
		"a group of 0":                   Probe{a, 0},
		"a group of 65":                  Invite{a, b, 65},
		"an ID of 513 bytes":             Accept{a, long},
		"a number without a leader":      Ready{Number{"", 1, 1}},
		"is not among the members":       Heartbeat{a, []ID{"b", "c"}},
		"want sorted IDs":                Heartbeat{a, []ID{"a", "c", "b"}},
		"an ID of 0 bytes: want 1":       Heartbeat{a, []ID{"", "a"}},
		"a group of 65: want 1 to 64":    Heartbeat{Number{"a000", 1, 1}, crowd},
		`"a" speaks for group b/1.1, wh`: Answer{a, b, []ID{"a", "b"}},
		"no message":                     nil,
	} {
		from := ID("a")
		if h, ok := m.(Heartbeat); ok && len(h.Members) > 64 {
			from = "a000"
		}
		require.ErrorContains(t, Check(from, m), says)
	}
	require.NoError(t, Check("b", Answer{Probe: a, Number: a}), "a member names its leader")
	require.NoError(t, Check("b", Answer{Probe: a}), "a process may be in no group")
}

func TestConfigsThatCannotWorkAreRefused(t *testing.T) {
	good := Config{"a", DefaultTiming()}
	require.NoError(t, good.Check())
	require.NoError(t, good.CheckPeers([]ID{"c", "b", "a", "b"}))
	for says, change := range map[string]func(*Config){
		"an ID of 0 bytes":             func(c *Config) { c.Self = "" },
		"Heartbeat 0s: want more than": func(c *Config) { c.Timing.Heartbeat = 0 },
		"Drain 48h0m0s":                func(c *Config) { c.Timing.Drain = 48 * time.Hour },
		"0 misses: want at least 1":    func(c *Config) { c.Timing.Misses = 0 },
	} {
		bad := good
		change(&bad)
		require.ErrorContains(t, bad.Check(), says)
	}
	require.ErrorContains(t, good.CheckPeers([]ID{"b", ""}), "an ID of 0 bytes")
	require.ErrorContains(t, good.CheckPeers([]ID{ID(strings.Repeat("x", MaxID+1))}), "an ID of 513 bytes")
	var crowd []ID
	for i := range MaxMembers {
		crowd = append(crowd, ID(fmt.Sprintf("b%03d", i)))
	}
	require.ErrorContains(t, good.CheckPeers(crowd), "65 processes: want at most 64")
}

// Whatever arrives, a process goes on, says nothing that others would refuse, and enters
// only what it belongs to and when its work has returned.
func TestNonsenseDoesNoHarm(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		w := newWorld(3, DefaultTiming(), flaws{})
		w.post = func(flight) {}
		w.start(0)
		self := &w.actors[0]
		numbers := []Number{{}, {"2", 1, 1}, {"2", 1, 2}, {"3", 1, 1}, {"9", 9, 9}}
		lists := [][]ID{nil, {"1", "2"}, {"1", "2", "3"}, {"2"}, {"1", "3"}}
		for range 200 {
			number := func() Number {
				if k := r.IntN(len(numbers) + 2); k < len(numbers) {
					return numbers[k]
				}
				return self.node.group.Number
			}
			from := []ID{"2", "3", "9"}[r.IntN(3)]
			mine := number()
			if r.IntN(3) > 0 && !mine.IsZero() {
				from = mine.By
			}
			m := []Message{
				Probe{mine, r.IntN(3)}, Answer{number(), mine, lists[r.IntN(5)]}, Invite{mine, number(), 2},
				Accept{number(), number()}, Join{mine, number()}, Ready{mine}, Heartbeat{mine, lists[r.IntN(5)]}, Alive{mine}, Gone{mine},
			}[r.IntN(9)]
			self.now += time.Duration(r.IntN(int(200 * time.Millisecond)))
			if from != self.id {
				w.step(0, Event{Kind: Arrived, From: from, Message: m})
			}
			if self.off && r.IntN(2) == 0 {
				w.returns(0)
			}
			w.step(0, Event{Kind: Tick})
			w.entries, w.claims = nil, nil // that numbers are formed once, others have to see to
			require.Empty(t, w.trouble, "seed %d", seed)
		}
	}
}
