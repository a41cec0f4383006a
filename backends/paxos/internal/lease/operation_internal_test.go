package lease

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAViewIsSettledIfNoMajorityCanSeeItOtherwise(t *testing.T) {
	b := func(n uint64) Ballot { return Ballot{Counter: n, Proposer: "a"} }
	old := Report{Accepted: b(1), State: State{Tenure: b(1)}, Life: 9}
	live := Report{Accepted: b(2), State: State{Tenure: b(2)}, Life: 3}
	over := Report{Accepted: b(2), State: State{Tenure: b(2)}, Expired: true}
	gone := Report{Accepted: b(3)}
	for name, c := range map[string]struct {
		reports       []Report
		settled, live bool
	}{
		"nothing ever":             {[]Report{{}, {}}, true, false},
		"alive with a majority":    {[]Report{live, live, old}, true, true},
		"alive with a minority":    {[]Report{live, old}, false, true},
		"over with a majority":     {[]Report{over, over}, false, false},
		"over with one":            {[]Report{over, live, live}, false, false},
		"over with all":            {[]Report{over, over, over}, false, false},
		"over with one of two":     {[]Report{live, over}, false, false},
		"vacant with a majority":   {[]Report{gone, live, gone}, true, false},
		"vacant with a minority":   {[]Report{gone, live}, false, false},
		"forgotten by a majority":  {[]Report{live, {}, {}}, false, true},
		"an older state is longer": {[]Report{old, live, live}, true, true},
	} {
		v := look(c.reports, 2)
		require.Equal(t, c.settled, v.settled, name)
		require.Equal(t, c.live, v.live, name)
		if v.live {
			require.EqualValues(t, 3, v.life, name)
		}
	}
}

func TestWhatAnAttemptHearsAfterItsRoundIsNothing(t *testing.T) {
	w := newWorld(flaws{})
	o := w.candidates[p].p.NewOperation("s", 1, Change{Kind: Create, Signature: "x", TTL: ttl})
	o.prepare(0, 1)
	promised := Promise{Safe: "s", Ballot: o.ballot, Acceptor: 1}
	o.Receive(round-1, "A", promised)
	require.Equal(t, preparing, o.phase)
	out := o.Receive(round, "B", promised)
	require.Equal(t, resting, o.phase)
	require.Empty(t, out.Send)
}

// An earlier attempt's proposal lies with C, which is silent. Before a create may say
// that it was refused, a newer state must be with a majority.
func TestARefusalIsMadeSureOfIfSomethingWasProposed(t *testing.T) {
	w := newWorld(flaws{})
	o := w.candidates[p].p.NewOperation("s", 1, Change{Kind: Create, Signature: "x", TTL: ttl})
	o.prepare(0, 8)
	for _, from := range []MemberID{"A", "C"} {
		o.Receive(0, from, Promise{Safe: "s", Ballot: o.ballot})
	}
	require.Equal(t, proposing, o.phase)
	o.rest(1)
	o.prepare(2, 9)
	other := Ballot{Counter: 7, Proposer: "q"}
	report := Report{Accepted: other, State: State{Tenure: other}, Life: 5}
	o.Receive(2, "A", Promise{Safe: "s", Ballot: o.ballot, Report: report})
	out := o.Receive(2, "B", Promise{Safe: "s", Ballot: o.ballot, Report: report})
	require.Equal(t, None, out.Result.Verdict)
	require.Empty(t, out.Send, "C may have something to say")
	out = o.Wake(out.Wake, 10)
	require.Len(t, out.Send, 2)
	m, ok := out.Send[0].Message.(Propose)
	require.True(t, ok)
	require.Equal(t, other, m.State.Tenure)
	o.Receive(2, "A", Accept{Safe: "s", Ballot: o.ballot})
	out = o.Receive(2, "B", Accept{Safe: "s", Ballot: o.ballot})
	require.Equal(t, Held, out.Result.Verdict)
}

// p's refresh was prepared while its record lived; the proposals are on their way when
// the record expires. A reader that nobody tells of them sees it gone, and says so only
// when it cannot come back.
func TestARefreshThatIsLateBringsNothingBackThatWasSeenGone(t *testing.T) {
	w := newWorld(flaws{})
	w.candidates[q].counter = 10
	s := script{t, w}
	s.does(p, Create, "ABC")
	s.at(ttl - 1)
	s.begin(p, Refresh)
	s.meets(p, "ABC")
	s.at(ttl)
	reader := w.candidates[q].p.NewOperation("s", 1, Change{Kind: Read})
	counter := uint64(20)
	out := reader.Begin(w.now, counter)
	for out.Result.Verdict == None {
		if len(out.Send) == 0 {
			counter++
			out = reader.Wake(w.now, counter)
		}
		for _, e := range out.Send {
			if i := int(e.To[0] - 'A'); i > 0 { // A is silent
				next := reader.Receive(w.now, e.To, w.acceptors[i].Receive(w.now, e.Message))
				if next.Result.Verdict != None || len(next.Send) > 0 || i == 2 {
					out = next
				}
			}
		}
	}
	require.Equal(t, Vacant, out.Result.Verdict)
	s.meets(p, "ABC")
	require.False(t, w.owns(w.candidates[p]), "%+v", w.candidates[p].mine)
}

// q completes p's record at C, which has promised q's ballot long before A told how long
// the record lives on.
func TestARecordThatIsCompletedLivesNoShorterForIt(t *testing.T) {
	w := newWorld(flaws{})
	w.candidates[q].counter = 10
	s := script{t, w}
	s.does(p, Create, "AB")
	s.at(1)
	s.begin(q, Create)
	s.asks(q, "C")
	s.at(round)
	s.asks(q, "A")
	s.hears(q, "AC")
	s.wake(q) // B stays silent
	s.meets(q, "AC")
	require.Nil(t, w.candidates[q].op, "it was refused")
	s.at(round + 1)
	require.False(t, w.acceptors[2].at("s").state.Vacant())
	require.GreaterOrEqual(t, w.acceptors[2].at("s").expires, w.candidates[p].until)
	s.does(q, Create, "BC")
	require.Empty(t, w.trouble)
}

// proposed is a create that has proposed itself at 0 under ballot 8, and gave that
// attempt up.
func proposed(t *testing.T) *Operation {
	t.Helper()
	o := newWorld(flaws{}).candidates[p].p.NewOperation("s", 1, Change{Kind: Create, Signature: "x", TTL: ttl})
	o.prepare(0, 8)
	for _, from := range []MemberID{"A", "C"} {
		o.Receive(0, from, Promise{Safe: "s", Ballot: o.ballot})
	}
	require.Equal(t, proposing, o.phase)
	o.rest(1)
	return o
}

func TestWhatMayHaveBeenForgottenIsUnclear(t *testing.T) {
	for name, c := range map[string]struct {
		now      time.Duration
		receipts uint64 // of others, under ballots that came later
		want     Verdict
	}{
		"the safe is empty still":                   {ttl - 1, 0, None},
		"acceptors may have been restarted":         {ttl, 0, Unclear},
		"others have almost pushed the receipt out": {2, MaxReceipts - 1, None},
		"others may have pushed the receipt out":    {2, MaxReceipts, Unclear},
	} {
		o := proposed(t)
		report := Report{}
		if c.receipts > 0 {
			report.Accepted = Ballot{Counter: 100, Proposer: "q"}
		}
		for i := range c.receipts {
			report.State.Receipts = append(report.State.Receipts, Receipt{Member: MemberID(rune('a' + i)), Counter: 50 + i})
		}
		o.prepare(c.now, 200)
		o.Receive(c.now, "A", Promise{Safe: "s", Ballot: o.ballot, Report: report})
		out := o.Receive(c.now, "B", Promise{Safe: "s", Ballot: o.ballot, Report: report})
		require.Equal(t, c.want, out.Result.Verdict, name)
	}
}

// Each completion may lengthen a life, so that there is an end to them.
func TestARecordIsCompletedAFewTimesAtMost(t *testing.T) {
	w := newWorld(flaws{})
	for rescues, want := range map[uint8]phase{MaxRescues - 1: proposing, MaxRescues: resting} {
		o := w.candidates[p].p.NewOperation("s", 1, Change{Kind: Read})
		o.prepare(0, 9)
		b := Ballot{Counter: 7, Proposer: "q"}
		o.Receive(0, "A", Promise{Safe: "s", Ballot: o.ballot, Report: Report{Accepted: b, State: State{Tenure: b, Rescues: rescues}, Life: 5}})
		out := o.Receive(0, "B", Promise{Safe: "s", Ballot: o.ballot})
		o.Wake(out.Wake, 10)
		require.Equal(t, want, o.phase, "%d", rescues)
	}
}

func TestALifeIsTheLongestThatIsLeft(t *testing.T) {
	b := Ballot{Counter: 2, Proposer: "a"}
	long := Report{Accepted: b, State: State{Tenure: b}, Life: 9}
	short := long
	short.Life = 3
	require.EqualValues(t, 9, look([]Report{long, short}, 2).life)
	require.EqualValues(t, 9, look([]Report{short, long}, 2).life)
}

func TestARefreshKeepsALiveRecordAndNoOther(t *testing.T) {
	tenure := Ballot{Counter: 2, Proposer: "a"}
	v := view{ballot: tenure, state: State{Tenure: tenure, Signature: "x", Revision: 2, Rescues: MaxRescues}, live: true}
	for _, kind := range []Kind{Refresh, Publish, HandOver, Delete} {
		change := Change{Kind: kind, OldSignature: "x", OldToken: 2, OldRevision: 2, Signature: "y"}
		over := v
		over.live = false
		_, refused := change.apply(over, Ballot{Counter: 3})
		require.Equal(t, Stale, refused, "%d", kind)
		next, refused := change.apply(v, Ballot{Counter: 3})
		require.Equal(t, None, refused, "%d", kind)
		require.Zero(t, next.Rescues, "its owner has written it")
	}
}

// A has missed that p's record was deleted and q's took its place: it holds p's, which
// lives, and refuses everything else. Who hears it first must not complete q's record
// again and again; C holds that too.
func TestAMemberThatMissedAChangeIsOutvoted(t *testing.T) {
	w := newWorld(flaws{})
	o := w.candidates[p].p.NewOperation("s", 1, Change{Kind: Delete, OldSignature: "x", OldToken: 3})
	o.prepare(0, 9)
	old, now := Ballot{Counter: 3, Proposer: "p"}, Ballot{Counter: 7, Proposer: "q"}
	missed := Report{Accepted: old, State: State{Tenure: old, Signature: "x"}, Life: 5}
	holds := Report{Accepted: now, State: State{Tenure: now, Rescues: MaxRescues}, Life: 5}
	o.Receive(0, "A", Promise{Safe: "s", Ballot: o.ballot, Report: missed})
	out := o.Receive(0, "B", Promise{Safe: "s", Ballot: o.ballot, Report: holds})
	require.Equal(t, preparing, o.phase)
	require.Positive(t, out.Wake)
	out = o.Receive(1, "C", Promise{Safe: "s", Ballot: o.ballot, Report: holds})
	require.Equal(t, Stale, out.Result.Verdict)
	require.Empty(t, out.Send)
}

// p has proposed to all; B and C do not hold it and never will, so that A, which may,
// need not keep it.
func TestAnAttemptIsRetractedIfAMajorityNeverHoldsIt(t *testing.T) {
	for name, c := range map[string]struct {
		void      bool
		retracted []MemberID
	}{"they never will": {true, []MemberID{"A"}}, "one of them may hold it": {false, nil}} {
		o := newWorld(flaws{}).candidates[p].p.NewOperation("s", 1, Change{Kind: Create, Signature: "x", TTL: ttl})
		o.prepare(0, 8)
		for _, from := range []MemberID{"A", "B", "C"} {
			o.Receive(0, from, Promise{Safe: "s", Ballot: o.ballot})
		}
		require.Empty(t, o.Receive(0, "B", Refusal{Safe: "s", Ballot: o.ballot, Promised: 9, Void: c.void}).Send)
		out := o.Receive(0, "C", Refusal{Safe: "s", Ballot: o.ballot, Promised: 9, Void: true})
		require.Equal(t, resting, o.phase)
		var to []MemberID
		for _, e := range out.Send {
			require.Equal(t, Retract{Safe: "s", Ballot: o.ballot}, e.Message)
			to = append(to, e.To)
		}
		require.Equal(t, c.retracted, to, name)
	}
}

// Where others write all the time, a counter that was learned before a rest is passed
// when it is over.
func TestAnAttemptThatComesTooLateGoesOnAtOnceAndThenRests(t *testing.T) {
	o := newWorld(flaws{}).candidates[p].p.NewOperation("s", 1, Change{Kind: Delete, OldSignature: "x"})
	o.prepare(5, 1)
	for counter, rests := range []bool{false, true, false, true} {
		counter := uint64(10 * (counter + 1))
		o.Receive(5, "A", Refusal{Safe: "s", Ballot: o.ballot, Promised: counter})
		require.Equal(t, preparing, o.phase)
		o.Receive(5, "B", Refusal{Safe: "s", Ballot: o.ballot, Promised: counter})
		require.Equal(t, resting, o.phase)
		require.Equal(t, rests, o.tries > 0 && !o.hurried)
		require.Equal(t, counter, o.Seen())
		o.prepare(5, counter+1)
	}
}

// Who has just read knows what counter is to follow.
func TestAnAnswerTellsWhatWasPromised(t *testing.T) {
	o := newWorld(flaws{}).candidates[p].p.NewOperation("s", 1, Change{Kind: Read})
	o.Begin(0, 5)
	o.Receive(0, "A", Answer{Safe: "s", Asker: o.ballot, Promised: 9})
	out := o.Receive(0, "B", Answer{Safe: "s", Asker: o.ballot, Promised: 7})
	require.Equal(t, Vacant, out.Result.Verdict)
	require.EqualValues(t, 9, o.Seen())
}
