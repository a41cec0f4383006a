package demo_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/cmd/elect/internal/demo"
)

// at returns an event at a time in milliseconds.
func at(ms int, who string, kind demo.Kind, token uint64, until int) demo.Event {
	return demo.Event{
		At:    time.Duration(ms) * time.Millisecond,
		Who:   who,
		Kind:  kind,
		Token: token,
		Until: time.Duration(until) * time.Millisecond,
	}
}

// good is a history in which every promise is kept: a is killed at 1000, b is
// asleep from 2000 to 6000, c leads from 4800.
func good() demo.History {
	return demo.History{
		TTL:   3 * time.Second,
		Life:  3300 * time.Millisecond,
		Slack: time.Second,
		Events: []demo.Event{
			at(0, "a", demo.Ready, 0, 0), at(0, "b", demo.Ready, 0, 0), at(0, "c", demo.Ready, 0, 0),
			at(10, "a", demo.Elected, 1, 2700),
			at(20, "a", demo.Worked, 1, 0),
			at(900, "a", demo.Extended, 1, 3600),
			at(990, "a", demo.Worked, 1, 0),
			at(1000, "a", demo.Killed, 0, 0),
			at(1050, "b", demo.Elected, 2, 3700),
			at(1070, "b", demo.Worked, 2, 0),
			at(1900, "b", demo.Extended, 2, 4600),
			at(1990, "b", demo.Worked, 2, 0),
			at(2000, "b", demo.Stopped, 0, 0),
			at(4800, "c", demo.Elected, 3, 7500),
			at(4820, "c", demo.Worked, 3, 0),
			at(6000, "b", demo.Woken, 0, 0),
			at(6001, "b", demo.Ended, 2, 0),
			at(7000, "c", demo.Worked, 3, 0),
			at(7100, "c", demo.Ended, 3, 0),
		},
	}
}

// with replaces the event at a time by others.
func with(ms int, others ...demo.Event) demo.History {
	h := good()
	i := slices.IndexFunc(h.Events, func(e demo.Event) bool { return e.At == time.Duration(ms)*time.Millisecond })
	h.Events = slices.Replace(h.Events, i, i+1, others...)
	return h
}

func TestAHistoryWithoutFaultKeepsEveryPromise(t *testing.T) {
	findings := demo.Judge(good())
	for _, f := range findings {
		require.True(t, f.Kept, "%s: %s", f.Promise, f.Detail)
	}
	require.True(t, demo.Kept(findings))
	require.Len(t, findings, 5)
}

func TestAStepBetweenTheDecisionToKillAndTheKillBreaksNothing(t *testing.T) {
	h := with(1000, at(1000, "a", demo.Killed, 0, 0), at(1001, "a", demo.Worked, 1, 0))
	for _, f := range demo.Judge(h) {
		require.True(t, f.Kept, "%s: %s", f.Promise, f.Detail)
	}
}

func TestJudgeDoesNotDependOnTheOrderOfTheRecords(t *testing.T) {
	h := good()
	slices.Reverse(h.Events)
	require.Equal(t, demo.Judge(good()), demo.Judge(h))
}

func TestJudgeFindsWhatIsBroken(t *testing.T) {
	slow := good()
	slow.Life, slow.Slack = time.Second, 500*time.Millisecond

	for _, c := range []struct {
		name    string
		history demo.History
		broken  string
		detail  string
	}{
		{"nobody is elected", demo.History{}, "one leader at a time", "nobody was elected"},
		{"the next is elected while a sleeper still trusts its lease",
			with(1900, at(1900, "b", demo.Extended, 2, 4900)),
			"one leader at a time", "c (token 3) was elected 0.10 s before the term of b (token 2) was over"},
		{"two lead at the same time",
			with(2000, at(2000, "b", demo.Stopped, 0, 0), at(2100, "c", demo.Elected, 9, 2200)),
			"one leader at a time", "c (token 9) was elected 2.50 s before the term of b (token 2) was over"},
		{"the next is elected before the leader is killed",
			with(1050, at(999, "b", demo.Elected, 2, 3700)),
			"one leader at a time", "b (token 2) was elected 1.0 ms before the term of a (token 1) was over"},
		{"one that was to be killed works on while the next leads",
			with(1000, at(1000, "a", demo.Killed, 0, 0), at(1060, "a", demo.Worked, 1, 0)),
			"one leader at a time", "b (token 2) was elected 10.0 ms before the term of a (token 1) was over"},
		{"one that was to be killed works beyond its trust",
			with(990, at(1000, "a", demo.Killed, 0, 0), at(3700, "a", demo.Worked, 1, 0)),
			"work only while leading", "a (token 1) worked 0.10 s after its term"},
		{"a token comes back",
			with(4800, at(4800, "c", demo.Elected, 2, 7500)),
			"tokens grow", "c was elected with token 2 after token 2"},
		{"a token is smaller",
			with(1050, at(1050, "b", demo.Elected, 0, 3700)),
			"tokens grow", "b was elected with token 0 after token 1"},
		{"the sleeper works on after waking",
			with(6001, at(6001, "b", demo.Worked, 2, 0), at(6002, "b", demo.Ended, 2, 0)),
			"a sleeper finds out", "b worked on 1.0 ms after it was woken, though its term had ended"},
		{"and that is work beyond the term too",
			with(6001, at(6001, "b", demo.Worked, 2, 0), at(6002, "b", demo.Ended, 2, 0)),
			"work only while leading", "b (token 2) worked 1.40 s after its term"},
		{"the sleeper never finds out",
			with(6001),
			"a sleeper finds out", "b was woken and never found out that its term was over"},
		{"the sleeper is woken too early to tell anything",
			with(6000, at(4000, "b", demo.Woken, 0, 0)),
			"a sleeper finds out", "b was woken before its term was over: nothing to judge by"},
		{"nobody sleeps", with(6000), "a sleeper finds out", "nobody was put to sleep and woken"},
		{"a leader does no work",
			demo.History{Events: []demo.Event{at(10, "a", demo.Elected, 1, 2700)}},
			"work only while leading", "a (token 1) did no work: nothing to judge by"},
		{"nobody follows a sleeper",
			with(4800), "a successor in time", "nobody was elected after b was put to sleep"},
		{"the successor comes late", slow,
			"a successor in time", "2.80 s after b was put to sleep; at most 1.50 s (the store's longest life of a record, and 0.50 s for a slow machine)"},
		{"work is done after a term that ended by itself",
			with(7100, at(6900, "c", demo.Ended, 3, 0)),
			"work only while leading", "c (token 3) worked 0.10 s after its term"},
	} {
		t.Run(c.name, func(t *testing.T) {
			findings := demo.Judge(c.history)
			require.False(t, demo.Kept(findings))
			i := slices.IndexFunc(findings, func(f demo.Finding) bool { return f.Promise == c.broken })
			require.GreaterOrEqual(t, i, 0)
			require.False(t, findings[i].Kept, findings[i].Detail)
			require.Equal(t, c.detail, findings[i].Detail)
		})
	}
}

func TestAnEmptyHistoryKeepsNoPromise(t *testing.T) {
	for _, f := range demo.Judge(demo.History{}) {
		require.False(t, f.Kept, f.Promise)
	}
	require.False(t, demo.Kept(nil))
}

func TestTheTimelineShowsWhoLedWhenAndWhatWasDoneToThem(t *testing.T) {
	require.Equal(t, ""+
		"a       1███████K\n"+
		"b       ·········2███████S███████████████████████zzzzzzzzzzzzC··········\n"+
		"c       ··········································3█████████████████████\n"+
		"leader  1████████2███████████████████████████████ 3█████████████████████\n"+
		"        ┬───────┬────────┬────────┬────────┬────────┬────────┬────────┬─\n"+
		"        0s      1s       2s       3s       4s       5s       6s       7s\n",
		demo.Timeline(good(), 72))
}

func TestATimelineOfNothingSaysSo(t *testing.T) {
	require.Equal(t, "nothing happened\n", demo.Timeline(demo.History{}, 72))
}

func TestATimelineOfOneInstantIsDrawn(t *testing.T) {
	h := demo.History{Events: []demo.Event{at(5, "a", demo.Ready, 0, 0)}}
	require.Contains(t, demo.Timeline(h, 10), "a       ·")
}
