package oracle_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
)

const ms = time.Millisecond

// at returns an event at a time in milliseconds. A field is set by a function.
func at(t int, who string, kind history.Kind, set ...func(*history.Event)) history.Event {
	e := history.Event{At: time.Duration(t) * ms, Who: who, Kind: kind}
	for _, s := range set {
		s(&e)
	}
	return e
}

func token(n uint64) func(*history.Event) { return func(e *history.Event) { e.Token = n } }
func until(t int) func(*history.Event) {
	return func(e *history.Event) { e.Until = time.Duration(t) * ms }
}
func within(t int) func(*history.Event) {
	return func(e *history.Event) { e.Within = time.Duration(t) * ms }
}
func text(s string) func(*history.Event)  { return func(e *history.Event) { e.Text = s } }
func value(s string) func(*history.Event) { return func(e *history.Event) { e.Value = s } }
func count(n int) func(*history.Event)    { return func(e *history.Event) { e.Count = n } }
func call(n uint64, op string) func(*history.Event) {
	return func(e *history.Event) { e.Call, e.Op, e.Signature = n, op, e.Who }
}

// result is what a call came to; a grant is of a TTL of 3 s.
func result(r string) func(*history.Event) {
	return func(e *history.Event) {
		if e.Result = r; r == history.OK {
			e.TTL = 3 * time.Second
		}
	}
}

// good is a history in which every promise is kept: a is killed at 1000, b is
// asleep from 2000 to 6000, c leads from 4800 to 7100.
func good() history.History {
	return history.History{
		About: history.About{TTL: 3 * time.Second, Margin: 300 * ms, Life: 3300 * ms, Slack: time.Second, Requests: 20, Turn: 3 * time.Second},
		Events: []history.Event{
			at(0, "a", history.Ready), at(0, "b", history.Ready), at(0, "c", history.Ready),
			at(5, "a", history.Sent, call(1, "create")),
			at(7, "a", history.Committed, call(1, "create"), token(1)),
			at(7, "a", history.Holds, token(1)),
			at(8, "a", history.Answered, call(1, "create"), token(1), result(history.OK)),
			at(10, "a", history.Elected, token(1), until(2705)),
			at(11, "a", history.Started, token(1)),
			at(20, "a", history.Worked, token(1)),
			at(21, "a", history.Accepted, token(1)),
			at(890, "a", history.Sent, call(2, "refresh"), token(1)),
			at(892, "a", history.Committed, call(2, "refresh")),
			at(894, "a", history.Answered, call(2, "refresh"), token(1), result(history.OK)),
			at(900, "a", history.Extended, token(1), until(3590)),
			at(950, "a", history.Keep, token(1), within(50)),
			at(990, "a", history.Worked, token(1)),
			at(1000, "a", history.Killed),
			at(1000, "a", history.Due, within(3300), text("a was killed")),
			at(1040, "b", history.Sent, call(1, "create")),
			at(1039, "", history.Holds),
			at(1041, "b", history.Committed, call(1, "create"), token(2)),
			at(1041, "b", history.Holds, token(2)),
			at(1042, "b", history.Answered, call(1, "create"), result(history.Unknown)),
			at(1045, "b", history.Seen, call(0, ""), token(2), result(history.OK)),
			at(1050, "b", history.Elected, token(2), until(3740)),
			at(1051, "b", history.Started, token(2)),
			at(1070, "b", history.Worked, token(2)),
			at(1071, "b", history.Accepted, token(2)),
			at(1880, "b", history.Sent, call(2, "refresh"), token(2)),
			at(1881, "b", history.Committed, call(2, "refresh")),
			at(1882, "b", history.Answered, call(2, "refresh"), token(2), result(history.OK)),
			at(1900, "b", history.Extended, token(2), until(4580)),
			at(1990, "b", history.Worked, token(2)),
			at(2000, "b", history.Stopped),
			at(2000, "b", history.Due, within(3300), text("b was put to sleep")),
			at(4780, "c", history.Sent, call(1, "create")),
			at(4775, "", history.Holds),
			at(4781, "c", history.Committed, call(1, "create"), token(3)),
			at(4781, "c", history.Holds, token(3)),
			at(4782, "c", history.Answered, call(1, "create"), token(3), result(history.OK)),
			at(4800, "c", history.Elected, token(3), until(7480)),
			at(4801, "c", history.Started, token(3)),
			at(4820, "c", history.Worked, token(3)),
			at(4821, "c", history.Accepted, token(3)),
			at(6000, "b", history.Woken),
			at(6001, "b", history.Ended, token(2)),
			at(6001, "b", history.Refused, token(2)),
			at(6002, "b", history.Finished, token(2)),
			at(6100, "", history.Placed, value("theirs")),
			at(6200, "", history.Found, value("theirs")),
			at(7000, "c", history.Worked, token(3)),
			at(7100, "c", history.Ended, token(3)),
			at(7101, "c", history.Finished, token(3)),
			at(7102, "c", history.Sent, call(2, "delete"), token(3)),
			at(7103, "c", history.Answered, call(2, "delete"), result("ok")),
			at(7104, "c", history.Left),
			at(7103, "", history.Holds),
			at(7200, "a", history.Waits, count(2)),
		},
	}
}

// with replaces the event of a kind at a time by others.
func with(t int, kind history.Kind, others ...history.Event) history.History {
	return replaced(good(), t, kind, others...)
}

func replaced(h history.History, t int, kind history.Kind, others ...history.Event) history.History {
	i := slices.IndexFunc(h.Events, func(e history.Event) bool { return e.At == time.Duration(t)*ms && e.Kind == kind })
	h.Events = slices.Replace(h.Events, i, i+1, others...)
	return h
}

// without removes all events of some kinds.
func without(kinds ...history.Kind) history.History {
	h := good()
	h.Events = slices.DeleteFunc(h.Events, func(e history.Event) bool { return slices.Contains(kinds, e.Kind) })
	return h
}

func TestAHistoryWithoutFaultKeepsEveryPromise(t *testing.T) {
	findings := oracle.Judge(good())
	require.Empty(t, findings.Broken())
	for _, f := range findings[:len(findings)-ofSuccessions] {
		require.Equal(t, oracle.Kept, f.Verdict, f.Promise)
		require.Positive(t, f.Count, f.Promise)
	}
}

// ofSuccessions is how many of the rules, the last, are about those.
const ofSuccessions = 7

func TestWhatKeepsEveryPromise(t *testing.T) {
	for name, h := range map[string]history.History{
		"a step between the decision to kill and the kill": with(1000, history.Killed,
			at(1000, "a", history.Killed), at(1001, "a", history.Worked, token(1))),
		"an overlap that an operator made, and that the next refresh ended": with(2000, history.Stopped,
			at(2000, "", history.Interfered, within(1000)),
			at(2100, "a", history.Sent, call(9, "create")), at(2100, "a", history.Committed, call(9, "create")),
			at(2101, "a", history.Answered, call(9, "create"), token(2), result(history.OK)),
			at(2000, "b", history.Stopped)),
	} {
		require.Empty(t, oracle.Judge(h).Broken(), name)
	}
}

func TestWorkThatBeginsRightBeforeAKillIsOverWhenTheCandidateComesAgain(t *testing.T) {
	again := func(killed ...history.Event) oracle.Finding {
		h := history.History{Events: append(killed,
			at(10, "a", history.Elected, token(1), until(100)),
			at(12, "a", history.Started, token(1)),
			at(20, "a", history.Ready),
			at(30, "a", history.Elected, token(2), until(200)),
			at(31, "a", history.Started, token(2)),
			at(32, "a", history.Finished, token(2)))}
		return oracle.Judge(h, oracle.CallbacksPaired)[0]
	}
	require.Equal(t, oracle.Kept, again(at(11, "a", history.Killed)).Verdict)
	require.Equal(t, oracle.Broken, again().Verdict)
}

func TestASleeperIsNotHeldAgainstATermOfAnotherLife(t *testing.T) {
	for name, events := range map[string][]history.Event{
		"it came to stand again after the term":  {at(20, "a", history.Killed), at(30, "a", history.Ready)},
		"it was killed before it could find out": {at(301, "a", history.Killed)},
	} {
		h := history.History{Events: append(events,
			at(5, "a", history.Ready),
			at(10, "a", history.Elected, token(1), until(100)),
			at(200, "a", history.Stopped),
			at(300, "a", history.Woken))}
		require.Equal(t, oracle.Silent, oracle.Judge(h, oracle.SleepersNotice)[0].Verdict, name)
		h.Events = h.Events[len(events):]
		require.Equal(t, oracle.Broken, oracle.Judge(h, oracle.SleepersNotice)[0].Verdict, name)
	}
}

func TestAnOperatorsOverlapIsAllowedAsLongAsItWasSaidAndNoLonger(t *testing.T) {
	overlap := func(end int) history.History {
		return history.History{Events: []history.Event{
			at(0, "a", history.Elected, token(1), until(2000)),
			at(500, "", history.Interfered, within(1000)),
			at(600, "b", history.Elected, token(2), until(2600)),
			at(end, "a", history.Ended, token(1)),
		}}
	}
	f := oracle.Judge(overlap(1500), oracle.OneLeader)[0]
	require.Equal(t, oracle.Kept, f.Verdict)
	require.Equal(t, "2 terms, 1 of them begun by an operator's hand", f.Detail)
	require.Equal(t, 1, oracle.Overlaps(overlap(1500)))
	for name, h := range map[string]history.History{
		"it lasted longer than was said": overlap(1501),
		"the operator came after the overlap had begun": {Events: []history.Event{
			at(0, "a", history.Elected, token(1), until(1000)),
			at(600, "b", history.Elected, token(2), until(2600)),
			at(700, "", history.Interfered, within(1000)),
		}},
		"the operator came before either term": {Events: []history.Event{
			at(0, "", history.Interfered, within(5000)),
			at(10, "a", history.Elected, token(1), until(1000)),
			at(600, "b", history.Elected, token(2), until(2600)),
		}},
	} {
		f = oracle.Judge(h, oracle.OneLeader)[0]
		require.Equal(t, oracle.Broken, f.Verdict, name)
	}
}

func TestALeaderIsInTimeUpToTheBoundAndNoLater(t *testing.T) {
	wait := func(bound int) oracle.Finding {
		h := with(2000, history.Due, at(2000, "b", history.Due, within(bound), text("b was put to sleep")))
		h.Slack = 0
		return oracle.Judge(h, oracle.LeaderInTime)[0]
	}
	require.Equal(t, oracle.Kept, wait(2800).Verdict)
	require.Equal(t, oracle.Broken, wait(2799).Verdict)
}

func TestRequestsAreCountedWithinATTLOnly(t *testing.T) {
	h := good()
	h.Requests, h.TTL = 1, 800*ms
	f := oracle.Judge(h, oracle.RequestsBounded)[0]
	require.Equal(t, oracle.Kept, f.Verdict, f.Detail)
	h.TTL = 850 * ms
	require.Equal(t, oracle.Broken, oracle.Judge(h, oracle.RequestsBounded)[0].Verdict)
}

func TestJudgeDoesNotDependOnTheOrderOfTheRecords(t *testing.T) {
	h := good()
	slices.Reverse(h.Events)
	slices.SortStableFunc(h.Events, func(a, b history.Event) int { return strings.Compare(a.Who, b.Who) })
	first := h.Events[0]
	require.Equal(t, oracle.Judge(good()).Broken(), oracle.Judge(h).Broken())
	require.Equal(t, first, h.Events[0], "the caller's history is left as it is")
}

func TestARuleFindsWhatIsBroken(t *testing.T) {
	slow := good()
	slow.Slack = 0
	slow = history.History{About: slow.About, Events: slices.Clone(slow.Events)}
	for i := range slow.Events {
		if slow.Events[i].Kind == history.Due {
			slow.Events[i].Within = time.Second
		}
	}
	busy := good()
	busy.Requests = 1

	for _, c := range []struct {
		name    string
		history history.History
		broken  string
		detail  string
	}{
		{"the next is elected while a sleeper still trusts its lease",
			with(1900, history.Extended, at(1900, "b", history.Extended, token(2), until(4900))),
			"one leader at a time", "c (token 3) was elected 0.10 s before the term of b (token 2) was over"},
		{"two lead at the same time",
			with(2000, history.Stopped, at(2000, "b", history.Stopped), at(2100, "c", history.Elected, token(9), until(2200))),
			"one leader at a time", "c (token 9) was elected 2.48 s before the term of b (token 2) was over"},
		{"the next is elected before the leader is killed",
			with(1050, history.Elected, at(999, "b", history.Elected, token(2), until(3740))),
			"one leader at a time", "b (token 2) was elected 1.0 ms before the term of a (token 1) was over"},
		{"one that was to be killed works on while the next leads",
			with(1000, history.Killed, at(1000, "a", history.Killed), at(1060, "a", history.Worked, token(1))),
			"one leader at a time", "b (token 2) was elected 10.0 ms before the term of a (token 1) was over"},
		{"a term within a long one overlaps though the one in between does not",
			with(2000, history.Stopped, at(2000, "b", history.Stopped),
				at(2100, "c", history.Elected, token(9), until(2200)), at(2300, "c", history.Elected, token(10), until(2400))),
			"one leader at a time", "c (token 9) was elected 2.48 s before the term of b (token 2) was over"},
		{"one that was to be killed works beyond its trust",
			with(990, history.Worked, at(1000, "a", history.Killed), at(3700, "a", history.Worked, token(1))),
			"work only while leading", "a (token 1) worked 0.11 s after its term"},
		{"a token comes back",
			with(4800, history.Elected, at(4800, "c", history.Elected, token(2), until(7480))),
			"tokens grow", "c was elected with token 2 after token 2"},
		{"a token is smaller",
			with(1050, history.Elected, at(1050, "b", history.Elected, token(0), until(3740))),
			"tokens grow", "b was elected with token 0 after token 1"},
		{"the sleeper works on after waking",
			with(6001, history.Ended, at(6001, "b", history.Worked, token(2)), at(6002, "b", history.Ended, token(2))),
			"a sleeper finds out", "b worked on 1.0 ms after it was woken, though its term had ended"},
		{"and that is work beyond the term too",
			with(6001, history.Ended, at(6001, "b", history.Worked, token(2)), at(6002, "b", history.Ended, token(2))),
			"work only while leading", "b (token 2) worked 1.42 s after its term"},
		{"the sleeper never finds out",
			with(6001, history.Ended),
			"a sleeper finds out", "b was woken and never found out that its term was over"},
		{"nobody follows a sleeper",
			with(4800, history.Elected), "a leader in time", "nobody led within 4.30 s after b was put to sleep"},
		{"the successor comes late", slow,
			"a leader in time", "2.80 s after b was put to sleep; promised within 1.00 s, and 0.0 ms for a slow machine"},
		{"work is done after a term that ended by itself",
			with(7100, history.Ended, at(6900, "c", history.Ended, token(3))),
			"work only while leading", "c (token 3) worked 0.10 s after its term"},
		{"the work goes on after the term has ended, until the leader is killed",
			with(7104, history.Left, at(7105, "c", history.Killed), at(7106, "c", history.Worked, token(3))),
			"work only while leading", "c (token 3) worked 6.0 ms after its term"},
		{"a leader that was to last does not",
			with(950, history.Keep, at(950, "a", history.Keep, token(1), within(51))),
			"a leader kept", "a (token 1) was to lead on for 51.0 ms, but its term ended after 50.0 ms: it was not extended"},
		{"a leader that was to last never was one",
			with(950, history.Keep, at(950, "a", history.Keep, token(7), within(50))),
			"a leader kept", "a was to lead on under token 7, but never did"},
		{"trust is counted from the answer",
			with(900, history.Extended, at(900, "a", history.Extended, token(1), until(3594))),
			"deadline from the send", "a (token 1) trusted its lease for 2.69 s from when it said so: no request that was granted allows that"},
		{"trust is counted from the sighting of a create whose answer was lost",
			with(1050, history.Elected, at(1050, "b", history.Elected, token(2), until(3745))),
			"deadline from the send", "b (token 2) trusted its lease for 2.69 s from when it said so: no request that was granted allows that"},
		{"an unclear answer extends trust",
			with(894, history.Answered, at(894, "a", history.Answered, call(2, "refresh"), token(1), result(history.Unknown))),
			"deadline from the send", "a (token 1) trusted its lease for 2.69 s from when it said so: no request that was granted allows that"},
		{"a refusal extends trust",
			with(894, history.Answered, at(894, "a", history.Answered, call(2, "refresh"), token(1), result(history.OK), result(history.Stale))),
			"deadline from the send", "a (token 1) trusted its lease for 2.69 s from when it said so: no request that was granted allows that"},
		{"an answer that has not come yet extends trust",
			with(894, history.Answered, at(901, "a", history.Answered, call(2, "refresh"), token(1), result(history.OK))),
			"deadline from the send", "a (token 1) trusted its lease for 2.69 s from when it said so: no request that was granted allows that"},
		{"a create that was refused is taken for the one that is seen",
			with(1042, history.Answered, at(1042, "b", history.Answered, call(1, "create"), result(history.Held))),
			"deadline from the send", "b (token 2) trusted its lease for 2.69 s from when it said so: no request that was granted allows that"},
		{"an answer to another term extends trust",
			with(894, history.Answered, at(894, "a", history.Answered, call(2, "refresh"), token(8), result(history.OK))),
			"deadline from the send", "a (token 1) trusted its lease for 2.69 s from when it said so: no request that was granted allows that"},
		{"an answer that came after the deadline extends the term",
			with(10, history.Elected, at(10, "a", history.Elected, token(1), until(800))),
			"no resurrection", "a (token 1) was extended by an answer that came 94.0 ms after its deadline"},
		{"the store never carried out what it granted",
			with(892, history.Committed),
			"extension only on proof", "a (token 1) trusted its lease until 3.59 s on the word of request 2 (refresh), which the store never carried out"},
		{"the resource takes a stale write",
			with(6001, history.Refused, at(6001, "b", history.Accepted, token(2))),
			"the fence holds", "a write of b was taken under token 2 after one under 3"},
		{"work is started twice",
			with(20, history.Worked, at(20, "a", history.Started, token(1))),
			"callbacks in pairs", "a was started under token 1 while it worked under token 1"},
		{"work is started without a term",
			with(4801, history.Started, at(4801, "c", history.Started, token(8))),
			"callbacks in pairs", "c was started under token 8, under which it was never elected"},
		{"the end of work is told twice",
			with(7101, history.Finished, at(7101, "c", history.Finished, token(3)), at(7101, "c", history.Finished, token(3))),
			"callbacks in pairs", "c was stopped under token 3, under which it was not at work"},
		{"the end of work is never told",
			with(7101, history.Finished),
			"callbacks in pairs", "c returned, but its work under token 3 was never stopped"},
		{"the safe is given up while work goes on",
			with(7101, history.Finished, at(7103, "c", history.Finished, token(3))),
			"released means stopped", "c gave up the safe under token 3 while its work went on"},
		{"goroutines are left",
			with(7104, history.Left, at(7104, "c", history.Left, count(2), text("watch, timer"))),
			"nothing is left running", "c returned and left 2 behind: watch, timer"},
		{"too many requests are sent", busy,
			"requests are bounded", "a sent 2 requests within 0.89 s; at most 1"},
		{"a foreign record is overwritten",
			with(6200, history.Found, at(6200, "", history.Found, value("ours"))),
			"foreign records unharmed", `"theirs" was put into the safe by somebody else, and "ours" is there now`},
	} {
		t.Run(c.name, func(t *testing.T) {
			findings := oracle.Judge(c.history)
			f, ok := findings.Of(c.broken)
			require.True(t, ok)
			require.Equal(t, oracle.Broken, f.Verdict, "%s", findings)
			require.Equal(t, c.detail, f.Detail)
			require.Contains(t, findings.Broken(), f)
			require.False(t, findings.AllKept())
		})
	}
}

func TestEachRuleIsSilentWhereThereIsNothingToJudgeBy(t *testing.T) {
	for _, f := range oracle.Judge(history.History{}) {
		require.Equal(t, oracle.Silent, f.Verdict, f.Promise)
	}
	require.False(t, oracle.Judge(history.History{}).AllKept())
	require.False(t, oracle.Findings(nil).AllKept())

	quiet := oracle.Judge(without(history.Sent, history.Committed, history.Keep, history.Left, history.Woken, history.Holds, history.Waits))
	require.Empty(t, quiet.Broken())
	silent := []string{}
	for _, f := range quiet {
		if f.Verdict == oracle.Silent {
			silent = append(silent, f.Promise)
		}
	}
	require.Equal(t, []string{"deadline from the send", "no resurrection", "extension only on proof", "a sleeper finds out",
		"a leader kept", "released means stopped", "nothing is left running", "requests are bounded",
		"everybody in turn", "a turn is taken or passed on", "who waits is in line"}, silent[:len(silent)-ofSuccessions])
}

func TestAWaitIsFromTheFaultToTheNextElectionOrExtension(t *testing.T) {
	h := good()
	h.Events = append(h.Events,
		at(1500, "a", history.Due, within(400), text("the store was back")),
		at(4700, "c", history.Due, within(5), text("c was cut off")),
		at(4900, "", history.Due, within(5), text("the store was killed")))
	h.Sort()
	require.Equal(t, []oracle.Wait{
		{After: "a was killed", Took: 50 * ms, Bound: 3300 * ms},
		{After: "the store was back", Took: 400 * ms, Bound: 400 * ms}, // extended
		{After: "b was put to sleep", Took: 2800 * ms, Bound: 3300 * ms},
		{After: "c was cut off", Took: 1<<63 - 1, Bound: 5 * ms},        // nobody else came
		{After: "the store was killed", Took: 1<<63 - 1, Bound: 5 * ms}, // c still trusts its lease
	}, oracle.Waits(h))
}

func TestAHistoryIsJudgedTheSameWhenItIsReadFromItsFile(t *testing.T) {
	h := with(894, history.Answered)
	h.Title, h.Seed = "a lost answer", 7
	path := filepath.Join(t.TempDir(), "h.ndjson")
	require.NoError(t, history.Save(path, h))
	back, err := history.Load(path)
	require.NoError(t, err)
	h.Sort()
	require.Equal(t, h, back)
	require.Equal(t, oracle.Judge(h), oracle.Judge(back))
	require.NotEmpty(t, oracle.Judge(back).Broken())
}

// A leader of etcd 3.6.5 was stopped and woken, and revoked the lease that its
// successor had renewed: a play of row 13 of the fault table, in which most steps
// of work are left out. Nobody but the fence stopped the former leader.
func TestAnOverlapThatARealServerMadeIsSeen(t *testing.T) {
	h, err := history.Load(filepath.Join("testdata", "etcd-woken-leader.ndjson"))
	require.NoError(t, err)
	found := oracle.Judge(h)
	broken := found.Broken()
	require.Len(t, broken, 1)
	require.Equal(t, oracle.OneLeader(oracle.Evidence{}).Promise, broken[0].Promise)
	require.Equal(t, "anna (token 4) was elected 62.5 ms before the term of ben (token 2) was over", broken[0].Detail)
	require.Equal(t, 1, oracle.Overlaps(h))
	fence, ok := found.Of(oracle.FenceHolds(oracle.Evidence{}).Promise)
	require.True(t, ok)
	require.Equal(t, oracle.Kept, fence.Verdict)
	require.Contains(t, fence.Detail, "3 stale ones refused")
}
