package lease

import (
	"testing"

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
