package oracle_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
)

func safe(name string) func(*history.Event) { return func(e *history.Event) { e.Safe = name } }
func next(who string) func(*history.Event)  { return func(e *history.Event) { e.Next = who } }
func op(name string) func(*history.Event)   { return func(e *history.Event) { e.Op = name } }

// succession is what happened after [good]: a leads from 8010 and hands over to b at
// 9000, of whom c is the heir and d no more than a candidate; c leads from 10010,
// is asked to hand over to somebody who does not stand, and then to resign.
func succession() []history.Event {
	return []history.Event{
		at(8000, "a", history.Sent, call(10, "create")),
		at(8001, "a", history.Committed, call(10, "create"), token(4)),
		at(8001, "a", history.Holds, token(4)),
		at(8002, "a", history.Answered, call(10, "create"), token(4), result(history.OK)),
		at(8010, "a", history.Elected, token(4), until(10700)),
		at(8011, "a", history.Started, token(4)),
		at(8020, "b", history.Holds, safe(history.Heir), token(5)),
		at(8100, "d", history.Idle, within(500)),
		at(8200, "b", history.Sent, safe(history.Heir), call(11, "refresh"), token(5)),
		at(8700, "d", history.Sent, safe(history.Heir), call(12, "watch")),
		at(8900, "a", history.Transferred, token(4), value("b"), result(history.OK), text("resigned")),
		at(8900, "a", history.Ended, token(4)),
		at(8901, "a", history.Passes, token(4), value("b"), within(200)),
		at(8950, "a", history.Finished, token(4)),
		at(8960, "a", history.Sent, call(11, "swap"), token(4), next("b")),
		at(9000, "a", history.Committed, call(11, "swap"), token(6)),
		at(9000, "b", history.Holds, token(6)),
		at(9005, "b", history.Sent, call(12, "refresh"), token(6)),
		at(9006, "b", history.Committed, call(12, "refresh"), token(6)),
		at(9007, "b", history.Answered, call(12, "refresh"), token(6), result(history.OK)),
		at(9010, "b", history.Elected, token(6), until(11705)),
		at(9011, "b", history.Started, token(6)),
		at(9012, "", history.Holds, safe(history.Heir)),
		at(9100, "", history.Preferred, value("c b")),
		at(9200, "b", history.Transferred, token(6), value("nobody"), result(history.NoHeir)),
		at(9300, "asker", history.Replied, op("transfer"), value("b"), within(400), result(history.OK)),
		at(9400, "b", history.Ended, token(6)),
		at(9401, "b", history.Finished, token(6)),
		at(9402, "b", history.Sent, call(13, "delete"), token(6)),
		at(9403, "", history.Holds),
		at(9500, "asker", history.Replied, op("resign"), within(150), result(history.OK)),
		at(9500, "", history.Settled, count(5)),
		at(9500, "b", history.Share, within(390+3530)),
	}
}

// succeeded is a history with successions, in which an event is replaced.
func succeeded(t int, kind history.Kind, others ...history.Event) history.History {
	h := good()
	h.Slack = 0
	h.Events = append(h.Events, succession()...)
	if kind == "" {
		return h
	}
	return replaced(h, t, kind, others...)
}

func TestASuccessionWithoutFaultKeepsEveryPromise(t *testing.T) {
	h := succeeded(0, "")
	findings := oracle.Judge(h)
	require.True(t, findings.AllKept(), "%s", findings)
	require.Len(t, findings, len(oracle.All()))
	for _, f := range findings {
		require.Positive(t, f.Count, f.Promise)
	}
	f, _ := findings.Of("requests are bounded")
	require.Equal(t, len(h.Of("", history.Sent)), f.Count, "those to other safes too")
}

func TestWhatIsAboutAnotherSafeIsNotHeldAgainstTheLeader(t *testing.T) {
	h := good()
	besides := []history.Event{}
	for _, e := range h.Events {
		switch e.Kind {
		case history.Sent, history.Answered, history.Committed, history.Holds, history.Seen:
			e.Safe, e.Token, e.Next = history.Heir, 77, "x"
			besides = append(besides, e)
		}
	}
	want := oracle.Judge(h)
	h.Requests *= 2
	h.Events = append(h.Events, besides...)
	got := oracle.Judge(h)
	i := slices.IndexFunc(got, func(f oracle.Finding) bool { return f.Promise == "requests are bounded" })
	require.Equal(t, slices.Delete(want, i, i+1), slices.Delete(got, i, i+1))
}

func TestARuleFindsWhatIsBrokenInASuccession(t *testing.T) {
	for _, c := range []struct {
		name    string
		history history.History
		broken  string
		detail  string
	}{
		{"the safe is vacant between a leader and its heir",
			succeeded(9000, history.Holds, at(8999, "", history.Holds), at(9000, "b", history.Holds, token(6))),
			"handed over without a gap", "the safe was vacant after a (token 4) gave it up, though b was next"},
		{"another comes before the heir",
			succeeded(9000, history.Holds, at(9000, "d", history.Holds, token(6))),
			"handed over without a gap", "a (token 4) was followed by d, though b was next"},
		{"a leader keeps the safe that it gave up",
			succeeded(9000, history.Holds, at(9102, "b", history.Holds, token(6))),
			"handed over without a gap", "a (token 4) did not hand over to b within 0.20 s"},
		{"who never had the safe is to hand it over",
			succeeded(8901, history.Passes, at(8901, "a", history.Passes, token(9), value("b"), within(200))),
			"handed over without a gap", "a was to hand over under token 9, which never had the safe"},
		{"the safe is handed over while the work goes on",
			succeeded(8950, history.Finished, at(8970, "a", history.Finished, token(4))),
			"released means stopped", "a gave up the safe under token 4 while its work went on"},
		{"the heir trusts what it was handed from when it saw it",
			succeeded(9010, history.Elected, at(9004, "b", history.Seen, call(0, ""), token(6), result(history.OK)),
				at(9010, "b", history.Elected, token(6), until(11706))),
			"deadline from the send", "b (token 6) trusted its lease for 2.70 s from when it said so: no request that was granted allows that"},
		{"the heir trusts what it was handed without having asked",
			succeeded(9007, history.Answered),
			"extension only on proof", "b (token 6) trusted its lease until 11.71 s on the word of request 0 (), which the store never carried out"},
		{"a transfer is refused and the term is over",
			succeeded(9200, history.Transferred, at(9200, "b", history.Transferred, token(6), value("d"), result(history.NoHeir), text("resigned"))),
			"a transfer is done or refused", "b (token 6) could not hand over to d, and leads no longer: resigned"},
		{"a transfer is done and the term goes on",
			succeeded(8900, history.Transferred, at(8900, "a", history.Transferred, token(4), value("b"), result(history.OK))),
			"a transfer is done or refused", "a (token 4) is said to hand over to b, and has not given up its term"},
		{"who asked for a transfer is told too early",
			succeeded(9300, history.Replied, at(8950, "asker", history.Replied, op("transfer"), value("b"), within(400), result(history.OK))),
			"what is asked for is done", "asker was told that b leads, which did not have the safe since it asked for that"},
		{"who asked a leader to resign is told too early",
			succeeded(9500, history.Replied, at(9402, "asker", history.Replied, op("resign"), within(150), result(history.OK))),
			"what is asked for is done", "asker was told that the leader has resigned, but b has had the safe under token 6 since before"},
		{"a candidate watches the leader though it is not next",
			succeeded(8100, history.Idle, at(8100, "d", history.Idle, count(1))),
			"waiting is free", "d waits, and is not next, and has 1 watches on the leader's safe"},
		{"a candidate asks the store while it waits",
			succeeded(8100, history.Idle, at(8100, "d", history.Idle, within(601))),
			"waiting is free", "d waits, and is not next, and sent a watch 0.60 s later"},
		{"another leads than who is preferred",
			succeeded(9100, history.Preferred, at(9100, "", history.Preferred, value("c"))),
			"the preferred one leads", "b (token 6) leads when one of c should"},
		{"nobody leads though somebody is preferred",
			succeeded(9100, history.Preferred, at(9450, "", history.Preferred, value("b"))),
			"the preferred one leads", "nobody leads when one of b should"},
		{"the leader changes though nothing is wrong",
			succeeded(9500, history.Settled, at(9500, "", history.Settled, count(4))),
			"few changes of leader", "5 terms where nothing went wrong and nobody was told to go; at most 4"},
		{"one that flaps leads for most of the time",
			succeeded(9500, history.Share, at(9500, "b", history.Share, within(3900))),
			"a flapping candidate is held back", "b led for 3.92 s of 9.50 s; at most 3.90 s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.history.Slack = 0
			f, ok := oracle.Judge(c.history).Of(c.broken)
			require.True(t, ok)
			require.Equal(t, oracle.Broken, f.Verdict)
			require.Equal(t, c.detail, f.Detail)
		})
	}
}

// Before the safe is given up, the call has displaced the heir; after it, the leader
// that was may have become the heir.
func TestALeaderThatWasCallingItsHeirHasNobodyToHandOverTo(t *testing.T) {
	for _, c := range []struct {
		called  int
		verdict oracle.Verdict
	}{{8900, oracle.Broken}, {8950, oracle.Silent}, {8999, oracle.Broken}} {
		h := succeeded(9000, history.Holds, at(8999, "", history.Holds), at(9000, "d", history.Holds, token(6)))
		h.Events = append(h.Events, at(c.called, "a", history.Holds, safe(history.Heir), token(5)))
		require.Equal(t, c.verdict, oracle.Judge(h, oracle.HandedOver)[0].Verdict, c.called)
	}
}

func TestAShareIsOfTermsUpToThenOnly(t *testing.T) {
	h := history.History{Events: []history.Event{
		at(0, "a", history.Elected, token(1), until(1000)),
		at(500, "a", history.Share, within(500)),
	}}
	require.Equal(t, oracle.Kept, oracle.Judge(h, oracle.SmallShare)[0].Verdict)
	h.Events[1].Within -= time.Nanosecond
	require.Equal(t, oracle.Broken, oracle.Judge(h, oracle.SmallShare)[0].Verdict)
}

// A candidate that stood still between the store's answer and the beginning of its
// term finds that term over when it begins.
func TestATermThatIsOverBeforeItBeginsIsNoLeaders(t *testing.T) {
	h := history.History{Events: []history.Event{
		at(100, "b", history.Elected, token(2), until(900)),
		at(500, "a", history.Elected, token(1), until(500)),
		at(950, "b", history.Elected, token(3), until(1900)),
	}}
	require.Empty(t, oracle.Judge(h, oracle.OneLeader, oracle.TokensGrow).Broken())
	h.Events[1].Until++
	require.Len(t, oracle.Judge(h, oracle.OneLeader, oracle.TokensGrow).Broken(), 2)
}

// Where observers judge, a record is dead to whoever asked when it was not written for
// the TTL that was granted, which may be shorter than the one that was asked for.
func TestALeaderHasResignedWhoseRecordHasLapsed(t *testing.T) {
	granted := func(ttl time.Duration) func(*history.Event) {
		return func(e *history.Event) { e.TTL = ttl }
	}
	h := history.History{About: history.About{TTL: 1000 * ms}, Events: []history.Event{
		at(0, "a", history.Sent, call(1, "create")),
		at(0, "a", history.Committed, call(1, "create"), token(1)),
		at(0, "a", history.Holds, token(1)),
		at(0, "a", history.Answered, call(1, "create"), token(1), result(history.OK), granted(750*ms)),
		at(760, "asker", history.Replied, op("resign"), within(700), result(history.OK)),
	}}
	require.Equal(t, oracle.Kept, oracle.Judge(h, oracle.RequestDone)[0].Verdict)
	h.Events[3].TTL = 1000 * ms
	require.Equal(t, oracle.Broken, oracle.Judge(h, oracle.RequestDone)[0].Verdict)
}
