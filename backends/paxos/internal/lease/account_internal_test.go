package lease

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAnAccountSaysWhatEachMemberHasSaidAtLast(t *testing.T) {
	w := newWorld(flaws{})
	o := w.candidates[p].p.NewOperation("s", 1, Change{Kind: Create, Signature: "x", TTL: ttl})
	says := func(a, b, c string) {
		t.Helper()
		require.Equal(t, []Said{{"A", a}, {"B", b}, {"C", c}}, o.Account())
	}
	o.Begin(0, 7)
	says("", "", "")
	o.Receive(0, "A", Answer{Asker: o.ballot})
	o.Receive(0, "B", Answer{Asker: o.ballot, Report: Report{Accepted: Ballot{Counter: 4}, State: State{Tenure: Ballot{Counter: 4}}, Life: 9}})
	says("answered that it knows of nothing", "answered with what attempt 4 has left", "")
	require.Empty(t, o.Note(), "it goes on")
	o.Receive(0, "C", Answer{Asker: o.ballot, Report: Report{Accepted: Ballot{Counter: 3}, State: State{Tenure: Ballot{Counter: 3}}, Expired: true}})
	says("answered that it knows of nothing", "answered with what attempt 4 has left", "answered with a record that is over, of attempt 3")
	require.Equal(t, noteDiffer, o.Note())

	o.prepare(1, 8)
	says("answered that it knows of nothing", "answered with what attempt 4 has left", "answered with a record that is over, of attempt 3")
	require.Equal(t, noteDiffer, o.Note())
	o.Receive(1, "A", Promise{Ballot: o.ballot})
	o.Receive(1, "C", Refusal{Ballot: o.ballot, Promised: 9})
	says("promised", "", "refused: it has promised a later attempt")
	require.Equal(t, noteDiffer, o.Note(), "of the attempt before, as long as this one goes on")
	o.Receive(1, "B", Promise{Ballot: o.ballot})
	says("promised, and has not said whether it accepts", "promised, and has not said whether it accepts", "refused: it has promised a later attempt")
	o.Receive(1, "A", Accept{Ballot: o.ballot})
	o.Receive(1, "B", Refusal{Ballot: o.ballot, Promised: 8, Held: true, Life: 3 * time.Second})
	says("accepted", "refused: it keeps another's lease for 3s more", "refused: it has promised a later attempt")
	require.Empty(t, o.Note())

	o.prepare(2, 1<<50)
	o.Receive(2, "A", Refusal{Ballot: o.ballot, Promised: 8})
	o.Receive(2, "C", Promise{Ballot: o.ballot})
	says("refused: counter 1125899906842624 is too far ahead of its own, 8", "", "promised")
	o.Receive(2, "B", Promise{Ballot: o.ballot})
	o.Receive(2, "C", Refusal{Ballot: o.ballot, Promised: 0})
	says("refused: counter 1125899906842624 is too far ahead of its own, 8", "promised, and has not said whether it accepts", "refused: it was restarted meanwhile")

	o.prepare(3, 1<<51)
	o.Receive(3, "A", Promise{Ballot: o.ballot})
	o.Receive(3, "B", Promise{Ballot: o.ballot})
	o.Receive(3, "B", Refusal{Ballot: o.ballot, Promised: 1 << 51})
	says("promised, and has not said whether it accepts", "refused: it has promised another attempt, or was asked too late", "")
}
