package stores

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	paxoskv "github.com/electkv/election/backends/paxos"
)

func TestAQuorumIsFitIfItsNumberIsOddAndBearsALoss(t *testing.T) {
	for members, want := range map[int]Level{1: Warn, 2: Warn, 3: OK, 4: Warn, 5: OK} {
		st := paxoskv.Status{Members: make([]paxoskv.Member, members), Majority: members/2 + 1}
		require.Equal(t, want, quorum(st).Level, "%d members", members)
	}
}

func TestMembersThatAreNotReachedAreNamedWithTheReason(t *testing.T) {
	st := paxoskv.Status{Majority: 2, Members: []paxoskv.Member{
		{ID: "a:1", Connected: true},
		{ID: "b:1", Trouble: errors.New("connection refused")},
		{ID: "c:1", Connected: true},
	}}
	f := reachable(st)
	require.Equal(t, Warn, f.Level)
	require.Equal(t, "2 of 3 are reached; b:1: connection refused", f.Found)
	st.Members[1] = st.Members[0]
	require.Equal(t, Finding{Level: OK, Subject: "members", Found: "all 3 are reached"}, reachable(st))
}
