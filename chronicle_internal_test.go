package election

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

func TestTermsThatEndEarlyAddUpAndOneThatLastsForgivesThem(t *testing.T) {
	const stability = 30 * time.Second
	for _, c := range []struct {
		name   string
		before int
		lasted time.Duration
		failed bool
		after  int
	}{
		{"a failure", 0, time.Second, true, 1},
		{"another", 1, time.Second, true, 2},
		{"one too many to count", maxStrikes, time.Second, true, maxStrikes},
		{"short, and no failure", 2, time.Second, false, 2},
		{"as long as was asked of it", 1, stability, true, 0},
		{"not as long as was asked of it", 2, 2*stability - 1, false, 2},
		{"as long as was asked of it after two", 2, 2 * stability, false, 0},
		{"never any", 0, time.Hour, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := map[string]int{"a": c.before, "b": 5}
			if c.before == 0 {
				delete(before, "a")
			}
			kept := fmt.Sprint(before)
			after := judge(before, "a", c.lasted, stability, c.failed)
			require.Equal(t, c.after, after["a"])
			require.Equal(t, 5, after["b"])
			require.Equal(t, kept, fmt.Sprint(before), "what others remember is theirs")
			_, listed := after["a"]
			require.Equal(t, c.after > 0, listed)
		})
	}
}

func TestWhoIsRememberedIsBounded(t *testing.T) {
	strikes := map[string]int{"often": 2}
	for i := range 100 {
		strikes = judge(strikes, fmt.Sprint(i), 0, time.Second, true)
		require.LessOrEqual(t, len(strikes), maxStruck)
		require.Equal(t, 1, strikes[fmt.Sprint(i)], "whoever fails last")
	}
	require.Equal(t, 2, strikes["often"], "whoever fails often")
}

func TestEachEarlyEndButTheFirstDoublesTheWait(t *testing.T) {
	for strikes, seconds := range []int{1, 1, 2, 4, 8, 16, 32, 64, 64, 64} {
		require.Equal(t, time.Duration(seconds)*time.Second, probation(time.Second, strikes), "%d strikes", strikes)
	}
	require.Equal(t, time.Minute, probation(time.Minute, -1), "as a damaged note may say")
}

func TestAChronicleCountsWhatItSawBegin(t *testing.T) {
	const stability = 30 * time.Second
	for name, c := range map[string]struct {
		before func(h *chronicle) // the term is seen
		strike bool
	}{
		"the first thing that it ever saw": {func(*chronicle) {}, false},
		"after a vacancy":                  {func(h *chronicle) { h.vacant() }, true},
		"after another's":                  {func(h *chronicle) { h.leads(reign{ID: "z", Token: 1}) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &chronicle{}
				c.before(h)
				h.leads(reign{ID: "a", Token: 2})
				time.Sleep(10 * time.Second)
				h.leads(reign{ID: "a", Token: 2, Heirs: []string{"b"}}) // told again
				time.Sleep(29 * time.Second)
				require.Equal(t, c.strike, h.strikes(stability, 10*time.Second, 10*time.Second)["a"] == 1, "29 s, of which it may have been dead for 10 s")
				require.Empty(t, h.strikes(stability, 10*time.Second, 0), "39 s are long enough")
				require.Equal(t, []string{"b"}, h.latest().Heirs)
			})
		})
	}
}

func TestAChronicleCountsEachTermOfOneCandidate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &chronicle{}
		h.vacant()
		h.leads(reign{ID: "a", Token: 1})
		time.Sleep(time.Minute)
		h.leads(reign{ID: "a", Token: 2})
		time.Sleep(time.Second)
		require.Equal(t, map[string]int{"a": 1}, h.strikes(30*time.Second, 0, 0))
	})
}

func TestAChronicleJudgesNoTermWhoseBeginningItDidNotSee(t *testing.T) {
	h := &chronicle{}
	h.leads(reign{ID: "a", Token: 1, Strikes: map[string]int{"a": 2}})
	require.Equal(t, map[string]int{"a": 2}, h.strikes(30*time.Second, 0, 0))
}

func TestATermOfStabilityIsNoStrikeAndForgivesOnlyTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &chronicle{}
		h.vacant()
		h.leads(reign{ID: "a", Token: 1, Strikes: map[string]int{"a": 2}})
		time.Sleep(30 * time.Second)
		require.Equal(t, map[string]int{"a": 2}, h.strikes(30*time.Second, 0, 0))
	})
}

func TestWhatOthersTellOfEarlierLeadersIsOld(t *testing.T) {
	h := &chronicle{}
	h.hear(reign{ID: "a", Token: 2})
	h.hear(reign{ID: "z", Token: 1})
	h.hear(reign{})
	require.Equal(t, "a", h.latest().ID)
	h.hear(reign{ID: "b", Token: 3})
	require.Equal(t, "b", h.latest().ID)
	h.leads(reign{ID: "c", Token: 1})
	require.Equal(t, "c", h.latest().ID, "what the safe shows is so")
}

func TestANoteThatCannotBeReadSaysNothing(t *testing.T) {
	for _, text := range []string{"", "x", "[]", `{"rank":"high"}`, `{"rank":1e99}`, "\xff"} {
		require.Equal(t, note{}, noteOf(kv.Record{Note: text}), "%q", text)
		require.Equal(t, request{}, requestOf(kv.Record{Value: text}), "%q", text)
	}
	require.Equal(t, note{Rank: 3}, noteOf(kv.Record{Note: `{"rank":3,"of":"tomorrow"}`}))
	require.Equal(t, request{}, requestOf(kv.Record{Value: `{"token":3}`, Foreign: true}))
}

func TestANoteComesBackFromItsText(t *testing.T) {
	n := note{
		Rank: -1, Heirs: []string{"a", "ключ"}, Since: 1, Strikes: map[string]int{"b": 2, "a": 1},
		Under: &reign{ID: "c", Token: 1<<64 - 1, Rank: 2, Heirs: []string{"d"}, Strikes: map[string]int{"e": 3}},
		Calls: "f", Called: 4, Formerly: "g/1",
	}
	require.Equal(t, n, noteOf(kv.Record{Note: n.text()}))
	require.Equal(t, "{}", note{}.text())
}

func TestALeaderThatFreedTheSafeItselfHasNotFailed(t *testing.T) {
	for _, c := range []struct {
		name    string
		after   time.Duration
		strikes int
	}{
		{"gone sooner than its record could fade", 4 * time.Second, 0},
		{"gone when its record may have faded", 10 * time.Second, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := &chronicle{}
				h.vacant()
				h.leads(reign{ID: "a", Token: 1})
				time.Sleep(c.after)
				require.Equal(t, c.strikes, h.strikes(30*time.Second, 10*time.Second, 10*time.Second)["a"])
			})
		})
	}
}
