package lease_test

import (
	"slices"
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
		require.Equal(t, lease.Refusal{Safe: safe, Ballot: b, Promised: 4, Void: b.Counter > 0}, a.Receive(0, lease.Prepare{Safe: safe, Ballot: b}))
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
			require.Equal(t, lease.Refusal{Safe: safe, Ballot: ballot(9, "b"), Promised: 9, Held: true, Life: 40, Void: true}, answer, name)
			require.IsType(t, lease.Refusal{}, a.Receive(100, m), "%s, refused for good", name)
			promise(t, a, 100, ballot(10, "b"))
			m.Ballot = ballot(10, "b")
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

func TestWhatIsRetractedWasNeverAccepted(t *testing.T) {
	report := func(a *lease.Acceptor) lease.Report {
		answer, ok := a.Receive(20, lease.Query{Safe: safe}).(lease.Answer)
		require.True(t, ok)
		return answer.Report
	}
	a := lease.NewAcceptor(three(), 7, 0, 0)
	require.Nil(t, a.Receive(0, lease.Retract{Safe: safe, Ballot: ballot(5, "a")}), "of a safe that it does not know")
	require.Zero(t, a.Forget(0))
	first, second, third := ballot(5, "a"), ballot(6, "b"), ballot(7, "c")
	promise(t, a, 0, first)
	require.IsType(t, lease.Accept{}, a.Receive(1, proposal(first, lease.Lease{})))
	before := report(a)
	promise(t, a, 2, second)
	heir := proposal(second, lease.Lease{Tenure: first, Ballot: first})
	require.IsType(t, lease.Accept{}, a.Receive(3, heir))
	middle := report(a)
	require.Nil(t, a.Receive(4, lease.Retract{Safe: safe, Ballot: ballot(6, "a")}))
	require.Equal(t, middle, report(a), "a ballot of somebody else")

	require.Nil(t, a.Receive(5, lease.Retract{Safe: safe, Ballot: second}))
	require.Equal(t, before, report(a))
	require.Equal(t, lease.Refusal{Safe: safe, Ballot: second, Promised: 6, Void: true}, a.Receive(6, heir), "once more")

	promise(t, a, 7, third)
	require.IsType(t, lease.Accept{}, a.Receive(8, proposal(third, lease.Lease{Tenure: first, Ballot: first})))
	last := report(a)
	require.Nil(t, a.Receive(9, lease.Retract{Safe: safe, Ballot: first}))
	require.Equal(t, last, report(a), "something else has taken its place")
	require.Nil(t, a.Receive(10, lease.Retract{Safe: safe, Ballot: third}))
	require.Equal(t, lease.Report{}, report(a), "nor is that there to go back to")
}

func TestAProposalThatIsRetractedBeforeItComesIsRefused(t *testing.T) {
	a := lease.NewAcceptor(three(), 7, 0, 0)
	promise(t, a, 0, ballot(5, "a"))
	require.Nil(t, a.Receive(1, lease.Retract{Safe: safe, Ballot: ballot(5, "a")}))
	require.IsType(t, lease.Refusal{}, a.Receive(2, proposal(ballot(5, "a"), lease.Lease{})))
}

// An acceptor that has accepted a proposal refuses it when it comes again after a higher
// promise. That is no word that it does not hold it.
func TestARefusalIsNotVoidOfWhatWasAccepted(t *testing.T) {
	a := lease.NewAcceptor(three(), 7, 0, 0)
	first, second := ballot(5, "a"), ballot(6, "b")
	promise(t, a, 0, first)
	require.IsType(t, lease.Accept{}, a.Receive(0, proposal(first, lease.Lease{})))
	promise(t, a, 0, second)
	refused := lease.Refusal{Safe: safe, Ballot: first, Promised: 6}
	require.Equal(t, refused, a.Receive(1, proposal(first, lease.Lease{})))
	require.Equal(t, refused, a.Receive(1, lease.Prepare{Safe: safe, Ballot: first}))
	require.IsType(t, lease.Accept{}, a.Receive(1, proposal(second, lease.Lease{Tenure: first, Ballot: first})))
	require.Equal(t, refused, a.Receive(2, lease.Prepare{Safe: safe, Ballot: first}), "replaced since")
	forgotten := proposal(ballot(8, "d"), lease.Lease{})
	forgotten.Acceptor = 6
	require.Equal(t, lease.Refusal{Safe: safe, Ballot: ballot(8, "d"), Promised: 6}, a.Receive(2, forgotten), "an earlier incarnation may have")
	never := ballot(4, "c")
	require.Equal(t, lease.Refusal{Safe: safe, Ballot: never, Promised: 6, Void: true}, a.Receive(2, lease.Prepare{Safe: safe, Ballot: never}), "never accepted")
}

// What was dropped for want of room cannot be gone back to.
func TestAnAcceptorGoesBackSoFarAndNoFurther(t *testing.T) {
	a := lease.NewAcceptor(three(), 7, 0, 0)
	var all []lease.Ballot
	replaced := lease.Lease{}
	for n := uint64(1); n <= 6; n++ {
		b := ballot(n, "a")
		promise(t, a, 0, b)
		require.IsType(t, lease.Accept{}, a.Receive(0, proposal(b, replaced)))
		replaced, all = lease.Lease{Tenure: b, Ballot: b}, append(all, b)
	}
	for i, b := range all {
		refusal, ok := a.Receive(1, lease.Propose{Safe: safe, Ballot: ballot(b.Counter, "b"), Acceptor: 7}).(lease.Refusal)
		require.True(t, ok)
		require.Equal(t, i > 2, refusal.Void, "%v may have been dropped for want of room", b)
	}
	for _, b := range slices.Backward(all) {
		a.Receive(1, lease.Retract{Safe: safe, Ballot: b})
	}
	answer, ok := a.Receive(2, lease.Query{Safe: safe}).(lease.Answer)
	require.True(t, ok)
	require.Equal(t, all[2], answer.Report.Accepted)
	require.Equal(t, uint64(6), answer.Promised)
}
