package lease_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/backends/paxos/internal/lease"
)

func TestALimitRisesSlowlyAndNotForever(t *testing.T) {
	const half = 500 * time.Millisecond
	l := lease.NewLimit(0)
	for range 10 {
		require.True(t, l.Admits(0, lease.Seeds))
	}
	require.True(t, l.Admits(0, lease.Seeds+lease.Stride))
	require.True(t, l.Admits(0, lease.Seeds+2*lease.Stride), "it rose when a counter came near it")
	for range 1000 {
		require.False(t, l.Admits(half-1, lease.MaxCounter))
		require.False(t, l.Admits(half-1, lease.Seeds+2*lease.Stride+1))
	}
	require.False(t, l.Admits(half, lease.MaxCounter))
	require.True(t, l.Admits(half, lease.Seeds+3*lease.Stride))
	require.False(t, l.Admits(half, lease.Seeds+3*lease.Stride+1))

	steps := (lease.MaxCounter - lease.Seeds) / lease.Stride
	require.Greater(t, time.Duration(steps)*half, 4*365*24*time.Hour)

	top := lease.NewLimit(1<<64 - 1)
	require.True(t, top.Admits(0, lease.MaxCounter))
	require.False(t, top.Admits(0, lease.MaxCounter+1))
	require.False(t, top.Admits(time.Hour, lease.MaxCounter+1))
	require.False(t, top.Admits(time.Hour, 1<<64-1))
}

func TestALimitIsWhereTheMajorityIs(t *testing.T) {
	l := lease.NewLimit(0)
	l.Learn(5)
	require.True(t, l.Admits(0, lease.Seeds))
	l.Learn(2 * lease.Seeds)
	require.True(t, l.Admits(0, 2*lease.Seeds+lease.Stride))
	l.Learn(1<<64 - 1)
	require.True(t, l.Admits(0, lease.MaxCounter))
	require.False(t, l.Admits(0, lease.MaxCounter+1))
}

func TestAClaimIsFollowedUpToTheLimit(t *testing.T) {
	l := lease.NewLimit(0)
	require.EqualValues(t, 7, l.Follow(0, 7))
	require.EqualValues(t, lease.Seeds, l.Follow(0, lease.Seeds))
	require.EqualValues(t, lease.Seeds+lease.Stride, l.Follow(0, 1<<64-1))
	require.EqualValues(t, lease.Seeds+lease.Stride, l.Follow(time.Second-1, 1<<64-1))
	require.EqualValues(t, lease.Seeds+2*lease.Stride, l.Follow(time.Second, 1<<64-1))
}

// Somebody who is led on by a lie asks the members for counters a little above what it
// follows to. They have heard nothing of it, and go along.
func TestMembersKeepUpWithOneThatFollowsALie(t *testing.T) {
	follower, member := lease.NewLimit(0), lease.NewLimit(0)
	for i := range 1000 {
		now := time.Duration(i) * 700 * time.Millisecond
		require.True(t, member.Admits(now, follower.Follow(now, 1<<64-1)+1000), i)
	}
}

// A proposal with a counter that is far too high gets the proposer no further than the
// next step.
func TestAnAcceptorGoesAlongWithNoWildCounter(t *testing.T) {
	for _, wild := range []uint64{lease.Seeds + 1, lease.MaxCounter, 1<<64 - 1} {
		a := lease.NewAcceptor(three(), 7, 0, 4)
		for range 100 {
			b := ballot(max(wild, lease.Seeds+2*lease.Stride+1), "a")
			require.Equal(t, lease.Refusal{Safe: safe, Ballot: b, Promised: 4}, a.Receive(0, lease.Prepare{Safe: safe, Ballot: b}),
				"and it is not void: the acceptor may promise it yet")
		}
		promise(t, a, 0, ballot(5, "a"))
		promise(t, a, 0, ballot(lease.Seeds, "a"))
		promise(t, a, 0, ballot(lease.Seeds+1, "b"))
		a.Forget(time.Hour)
		b := ballot(lease.Seeds+1, "c")
		require.Equal(t, lease.Refusal{Safe: safe, Ballot: b, Promised: lease.Seeds + 1, Void: true}, a.Receive(time.Hour, lease.Prepare{Safe: safe, Ballot: b}))
	}
}

// What was refused as too far may be promised when it comes again.
func TestACounterThatWasTooFarIsPromisedLater(t *testing.T) {
	a := lease.NewAcceptor(three(), 7, 0, 0)
	b := ballot(lease.Seeds+3*lease.Stride, "a")
	require.IsType(t, lease.Refusal{}, a.Receive(0, lease.Prepare{Safe: safe, Ballot: b}))
	require.IsType(t, lease.Refusal{}, a.Receive(time.Second/2-1, lease.Prepare{Safe: safe, Ballot: b}))
	promise(t, a, time.Second/2, b)
	require.Equal(t, lease.Accept{Safe: safe, Ballot: b}, a.Receive(time.Second/2, proposal(b, lease.Lease{})))
}

func TestAnAcceptorThatHasBeenFarGoesOnFromThere(t *testing.T) {
	const floor = lease.MaxCounter - 10
	a := lease.NewAcceptor(three(), 7, 0, floor)
	promise(t, a, 0, ballot(floor+1, "a"))
	promise(t, a, 0, ballot(lease.MaxCounter, "a"))
	require.IsType(t, lease.Refusal{}, a.Receive(0, lease.Prepare{Safe: safe, Ballot: ballot(lease.MaxCounter+1, "a")}))
}

func TestAnAcceptorTakesNoStateFromTheFuture(t *testing.T) {
	for name, change := range map[string]func(*lease.Propose){
		"a token":    func(m *lease.Propose) { m.State.Tenure.Counter = 6 },
		"a revision": func(m *lease.Propose) { m.State.Revision = 6 },
		"a receipt":  func(m *lease.Propose) { m.State.Receipts = []lease.Receipt{{Counter: 6}} },
		"a TTL":      func(m *lease.Propose) { m.State.TTL = 101 },
		"a vacancy's receipt": func(m *lease.Propose) {
			m.State, m.Life = lease.State{Receipts: []lease.Receipt{{Counter: 6}}}, 0
		},
	} {
		a := lease.NewAcceptor(three(), 7, 0, 0)
		b := ballot(5, "a")
		promise(t, a, 0, b)
		m := proposal(b, lease.Lease{})
		change(&m)
		require.Equal(t, lease.Refusal{Safe: safe, Ballot: b, Promised: 5, Void: true}, a.Receive(0, m), name)
		require.Equal(t, lease.Accept{Safe: safe, Ballot: b}, a.Receive(0, proposal(b, lease.Lease{})), name)
	}
}

func TestEachRequestHasItsAuthor(t *testing.T) {
	b := ballot(5, "a")
	for _, m := range []lease.Message{lease.Query{Asker: b}, lease.Prepare{Ballot: b}, lease.Propose{Ballot: b}, lease.Retract{Ballot: b}, lease.Commit{Ballot: b}} {
		require.False(t, lease.Forged("a", m), "%T", m)
		require.True(t, lease.Forged("b", m), "%T", m)
	}
	for _, m := range []lease.Message{lease.Answer{Asker: b}, lease.Promise{Ballot: b}, lease.Accept{Ballot: b}, lease.Refusal{Ballot: b}} {
		require.False(t, lease.Forged("b", m), "%T", m)
	}
}
