package lease_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/backends/paxos/internal/lease"
)

const safe = "s"

func three() lease.Terms {
	return lease.Terms{Cluster: "c", Members: []lease.MemberID{"a", "b", "c"}, MaxTTL: 100, Round: 10}
}

func ballot(counter uint64, proposer lease.MemberID) lease.Ballot {
	return lease.Ballot{Counter: counter, Proposer: proposer, Incarnation: 1}
}

// promise has the acceptor promise a ballot.
func promise(t *testing.T, a *lease.Acceptor, now time.Duration, b lease.Ballot) lease.Promise {
	t.Helper()
	answer, ok := a.Receive(now, lease.Prepare{Safe: safe, Ballot: b}).(lease.Promise)
	require.True(t, ok, "ballot %v at %d", b, now)
	return answer
}

// proposal is a record with a life of a hundred under its own ballot.
func proposal(b lease.Ballot, replaces lease.Lease) lease.Propose {
	return lease.Propose{Safe: safe, Ballot: b, Acceptor: 7, Replaces: replaces, State: lease.State{Tenure: b, TTL: 100}, Life: 100}
}

func TestAnAcceptorPromisesACounterOnce(t *testing.T) {
	a := lease.NewAcceptor(three(), 7, 0, 4)
	for _, b := range []lease.Ballot{ballot(0, "a"), ballot(3, "a"), ballot(4, "a")} {
		require.Equal(t, lease.Refusal{Safe: safe, Ballot: b, Promised: 4}, a.Receive(0, lease.Prepare{Safe: safe, Ballot: b}))
	}
	first := promise(t, a, 0, ballot(5, "a"))
	require.Equal(t, uint64(7), first.Acceptor)
	require.Equal(t, uint64(5), lease.Promised(first))
	require.Equal(t, first, promise(t, a, 1, ballot(5, "a")), "once more")
	for _, b := range []lease.Ballot{ballot(5, "b"), {Counter: 5, Proposer: "a", Incarnation: 2}} {
		require.IsType(t, lease.Refusal{}, a.Receive(1, lease.Prepare{Safe: safe, Ballot: b}))
	}
}

func TestAnAcceptorAcceptsWhatItPromisedAlone(t *testing.T) {
	a := lease.NewAcceptor(three(), 7, 0, 0)
	promise(t, a, 0, ballot(5, "a"))
	earlier := proposal(ballot(5, "a"), lease.Lease{})
	earlier.Acceptor = 6
	long := proposal(ballot(5, "a"), lease.Lease{})
	long.Life = 1000
	for name, m := range map[string]lease.Propose{
		"a lower ballot":                      proposal(ballot(4, "a"), lease.Lease{}),
		"a higher ballot":                     proposal(ballot(6, "a"), lease.Lease{}),
		"another's":                           proposal(ballot(5, "b"), lease.Lease{}),
		"promised before it was restarted":    earlier,
		"for longer than anything lives here": long,
	} {
		require.IsType(t, lease.Refusal{}, a.Receive(1, m), name)
	}
	good := proposal(ballot(5, "a"), lease.Lease{})
	require.IsType(t, lease.Refusal{}, a.Receive(100, good), "a life later")
	for range 2 {
		require.Equal(t, lease.Accept{Safe: safe, Ballot: ballot(5, "a")}, a.Receive(99, good))
	}
}

func TestALifeCountsFromThePromise(t *testing.T) {
	a := lease.NewAcceptor(three(), 7, 0, 0)
	promise(t, a, 10, ballot(5, "a"))
	promise(t, a, 20, ballot(5, "a"))
	require.IsType(t, lease.Accept{}, a.Receive(60, proposal(ballot(5, "a"), lease.Lease{})))
	report := func(now time.Duration) lease.Report {
		answer, ok := a.Receive(now, lease.Query{Safe: safe}).(lease.Answer)
		require.True(t, ok)
		return answer.Report
	}
	require.Equal(t, time.Duration(1), report(109).Life)
	require.False(t, report(109).Expired)
	require.True(t, report(110).Expired)
	require.Zero(t, report(110).Life)
}

func TestALiveLeaseIsLeftAlone(t *testing.T) {
	own := lease.Lease{Tenure: ballot(5, "a"), Ballot: ballot(5, "a")}
	nextLife := lease.Ballot{Counter: 5, Proposer: "a", Incarnation: 2}
	for name, c := range map[string]struct {
		replaces lease.Lease
		accepted bool
	}{
		"nothing":                      {lease.Lease{}, false},
		"another's":                    {lease.Lease{Tenure: ballot(4, "b"), Ballot: ballot(5, "a")}, false},
		"the same member's next life":  {lease.Lease{Tenure: nextLife, Ballot: nextLife}, false},
		"the same owner's older state": {lease.Lease{Tenure: ballot(5, "a"), Ballot: ballot(4, "a")}, false},
		"itself":                       {own, true},
		"a state of it that is newer":  {lease.Lease{Tenure: ballot(5, "a"), Ballot: ballot(6, "a")}, true},
	} {
		for _, vacant := range []bool{false, true} {
			a := lease.NewAcceptor(three(), 7, 0, 0)
			promise(t, a, 0, ballot(5, "a"))
			require.IsType(t, lease.Accept{}, a.Receive(0, proposal(ballot(5, "a"), lease.Lease{})))
			promise(t, a, 50, ballot(9, "b"))
			m := proposal(ballot(9, "b"), c.replaces)
			if vacant {
				m.State, m.Life = lease.State{}, 0
			}
			answer := a.Receive(60, m)
			if c.accepted {
				require.IsType(t, lease.Accept{}, answer, name)
				continue
			}
			require.Equal(t, lease.Refusal{Safe: safe, Ballot: ballot(9, "b"), Promised: 9, Held: true, Life: 40}, answer, name)
			require.IsType(t, lease.Accept{}, a.Receive(100, m), "%s, when it is over", name)
		}
	}
}

func TestAnAcceptorSaysNothingBeforeItOpens(t *testing.T) {
	a := lease.NewAcceptor(three(), 7, 110, 0)
	for _, m := range []lease.Message{lease.Query{Safe: safe}, lease.Prepare{Safe: safe, Ballot: ballot(1, "a")}, proposal(ballot(1, "a"), lease.Lease{})} {
		require.Nil(t, a.Receive(109, m))
	}
	require.IsType(t, lease.Answer{}, a.Receive(110, lease.Query{Safe: safe}))
}

func TestAnAcceptorForgetsWhatARestartWouldForget(t *testing.T) {
	a := lease.NewAcceptor(three(), 7, 0, 0)
	promise(t, a, 0, ballot(5, "a"))
	require.IsType(t, lease.Accept{}, a.Receive(0, proposal(ballot(5, "a"), lease.Lease{})))
	require.Equal(t, 1, a.Forget(209), "it was over at 100, and a quarantine is 110")
	require.Equal(t, 0, a.Forget(210))
	require.IsType(t, lease.Refusal{}, a.Receive(211, lease.Prepare{Safe: safe, Ballot: ballot(5, "b")}), "not its promise, though")
}
