package machine

import (
	"fmt"
	"testing"
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
		{"one too many to count", MaxStrikes, time.Second, true, MaxStrikes},
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

// after returns the instant that long after all began, when nothing was suspended.
func after(d time.Duration) Instant { return Instant{Mono: d, Boot: d} }

func TestAMemoryCountsWhatItSawBegin(t *testing.T) {
	const stability = 30 * time.Second
	for name, c := range map[string]struct {
		before func(m *Memory) // the term is seen
		strike bool
	}{
		"the first thing that it ever saw": {func(*Memory) {}, false},
		"after a vacancy":                  {func(m *Memory) { m.Looked = true }, true},
		"after another's":                  {func(m *Memory) { m.leads(Leader{ID: "z", Token: 1}, after(0)) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			m := &Memory{}
			c.before(m)
			m.leads(Leader{ID: "a", Token: 2}, after(0))
			m.leads(Leader{ID: "a", Token: 2, Heirs: []string{"b"}}, after(10*time.Second)) // told again
			now := after(39 * time.Second)
			require.Equal(t, c.strike, m.strikes(m.leader(), now, stability, 10*time.Second, 10*time.Second)["a"] == 1, "29 s, of which it may have been dead for 10 s")
			require.Empty(t, m.strikes(m.leader(), now, stability, 10*time.Second, 0), "39 s are long enough")
			require.Equal(t, []string{"b"}, m.leader().Heirs)
		})
	}
}

func TestAMemoryCountsEachTermOfOneCandidate(t *testing.T) {
	m := &Memory{Looked: true}
	m.leads(Leader{ID: "a", Token: 1}, after(0))
	m.leads(Leader{ID: "a", Token: 2}, after(time.Minute))
	require.Equal(t, map[string]int{"a": 1}, m.strikes(m.leader(), after(time.Minute+time.Second), 30*time.Second, 0, 0))
}

func TestAMemoryJudgesNoTermWhoseBeginningItDidNotSee(t *testing.T) {
	m := &Memory{}
	m.leads(Leader{ID: "a", Token: 1, Strikes: map[string]int{"a": 2}}, after(0))
	require.Equal(t, map[string]int{"a": 2}, m.strikes(m.leader(), after(0), 30*time.Second, 0, 0))
}

func TestATermOfStabilityIsNoStrikeAndForgivesOnlyTheFirst(t *testing.T) {
	m := &Memory{Looked: true}
	m.leads(Leader{ID: "a", Token: 1, Strikes: map[string]int{"a": 2}}, after(0))
	require.Equal(t, map[string]int{"a": 2}, m.strikes(m.leader(), after(30*time.Second), 30*time.Second, 0, 0))
}

func TestWhatOthersTellOfEarlierLeadersIsOld(t *testing.T) {
	m := &Memory{}
	m.hear(Leader{ID: "a", Token: 2}, after(0))
	m.hear(Leader{ID: "z", Token: 1}, after(0))
	m.hear(Leader{}, after(0))
	require.Equal(t, "a", m.leader().ID)
	m.hear(Leader{ID: "b", Token: 3}, after(0))
	require.Equal(t, "b", m.leader().ID)
	m.leads(Leader{ID: "c", Token: 1}, after(0))
	require.Equal(t, "c", m.leader().ID, "what the safe shows is so")
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
			m := &Memory{Looked: true}
			m.leads(Leader{ID: "a", Token: 1}, after(0))
			require.Equal(t, c.strikes, m.strikes(m.leader(), after(c.after), 30*time.Second, 10*time.Second, 10*time.Second)["a"])
		})
	}
}

func TestANoteThatCannotBeReadSaysNothing(t *testing.T) {
	for _, text := range []string{"", "x", "[]", `{"rank":"high"}`, `{"rank":1e99}`, "\xff"} {
		require.Equal(t, Note{}, NoteOf(kv.Record{Note: text}), "%q", text)
	}
	require.Equal(t, Note{Rank: 3}, NoteOf(kv.Record{Note: `{"rank":3,"of":"tomorrow"}`}))
}

func TestANoteComesBackFromItsText(t *testing.T) {
	n := Note{
		Rank: -1, Heirs: []string{"a", "ключ"}, Since: 1, Strikes: map[string]int{"b": 2, "a": 1},
		Under: &Leader{ID: "c", Token: 1<<64 - 1, Rank: 2, Heirs: []string{"d"}, Strikes: map[string]int{"e": 3}},
		Calls: "f", Called: 4, Formerly: "g/1",
	}
	require.Equal(t, n, NoteOf(kv.Record{Note: n.Text()}))
	require.Equal(t, "{}", Note{}.Text())
}
