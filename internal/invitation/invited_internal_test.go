package invitation

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// pairOf is a leader "m" of the group of "m" and "n", which has confirmed it.
func pairOf(t *testing.T) Node {
	n := newNetwork(2, DefaultTiming(), 1, flaws{})
	for i, id := range []ID{"m", "n"} {
		n.actors[i].id, n.actors[i].cfg.Self = id, id
	}
	n.begins(0)
	n.begins(1)
	n.settles(t)
	n.run(100 * time.Millisecond)
	node := n.actors[0].node
	require.True(t, node.leads())
	require.Len(t, node.alive(), 1)
	return node
}

// accepts reports whether a leader accepts an invitation, and what becomes of it.
func accepts(n Node, now time.Duration, from ID, size int, counter uint64) (Node, bool) {
	n, out := Step(n, now, Event{Kind: Arrived, From: from, Message: Invite{Number{from, 1, counter}, n.group.Number, size}})
	for _, e := range out {
		if m, ok := e.Message.(Accept); ok {
			return n, e.To == from && m.Number == Number{from, 1, counter} && m.Old == n.group.Number
		}
	}
	return n, false
}

func TestALeaderAcceptsTheInvitationOfABetterOneAlone(t *testing.T) {
	now := 10 * time.Second
	for _, c := range []struct {
		from ID
		size int
		want bool
	}{{"z", 3, true}, {"a", 2, true}, {"z", 2, false}, {"a", 1, false}} {
		_, ok := accepts(pairOf(t), now, c.from, c.size, 1)
		require.Equal(t, c.want, ok, "%s, who leads %d", c.from, c.size)
	}
}

func TestALeaderAcceptsOneInvitationAtATime(t *testing.T) {
	n, now := pairOf(t), 10*time.Second
	n, ok := accepts(n, now, "a", 3, 1)
	require.True(t, ok)
	n, ok = accepts(n, now, "b", 9, 1)
	require.False(t, ok, "it has given its word to another")
	n, ok = accepts(n, now, "a", 3, 1)
	require.True(t, ok, "the answer may have been lost")
	n, ok = accepts(n, now, "a", 3, 2)
	require.False(t, ok, "that is another group")
	_, ok = accepts(n, now+DefaultTiming().hold(), "b", 9, 1)
	require.True(t, ok, "nothing has come of the first")
}

func TestALeaderThatHasAcceptedLooksForNobodyMeanwhile(t *testing.T) {
	n := pairOf(t)
	now := n.next - DefaultTiming().Round
	n, _ = Step(n, now, Event{Kind: Peers, Peers: []ID{"a", "n", "z"}})
	n, ok := accepts(n, now, "a", 3, 1)
	require.True(t, ok)
	n, _ = Step(n, now+DefaultTiming().Round, Event{Kind: Tick})
	require.Equal(t, idle, n.round.phase)
	n, _ = Step(n, now+DefaultTiming().hold(), Event{Kind: Tick})
	require.Equal(t, looking, n.round.phase)
}

// All or none of a group are taken, so a leader that misses a member would accept in vain.
func TestALeaderThatMissesAMemberDropsItFirst(t *testing.T) {
	n, now := pairOf(t), 10*time.Second
	n, ok := accepts(n, now, "a", 3, 1)
	require.True(t, ok)
	n, _ = Step(n, now, Event{Kind: Arrived, From: "n", Message: Gone{n.group.Number}})
	_, ok = accepts(n, now, "a", 3, 1)
	require.False(t, ok)
}

func TestMembersOfALeaderThatRestartsNeedNotMissIt(t *testing.T) {
	n := whole(t, 5)
	n.crash(0)
	n.begins(0)
	leaves, enters := n.leaves, n.enters
	require.Less(t, n.settles(t), DefaultTiming().patience())
	require.Equal(t, []int{4, 5}, []int{n.leaves - leaves, n.enters - enters}, "nobody works alone meanwhile")
}

func TestMembersOfALeaderWhoseWorkDoesNotStopNeedNotMissIt(t *testing.T) {
	n := halves(t, 2, 2)
	n.drain[0] = time.Minute
	n.actors[0].node.cfg.Timing.Drain += DefaultTiming().Heartbeat / 2 // what it says then is the only sign
	n.parts(make([]int, 4))
	_, ok := n.until(time.Minute, func() bool { return n.actors[0].node.round.phase == joining })
	require.True(t, ok)
	_, ok = n.until(time.Minute, func() bool { return n.actors[0].node.round.phase == idle })
	require.True(t, ok)
	took, ok := n.until(time.Minute, func() bool { return len(n.actors[1].node.group.Members) == 3 })
	require.True(t, ok)
	require.Less(t, took, 3*DefaultTiming().Round)
	require.Empty(t, n.trouble)
}

func TestAProcessThatRestartsInAMergeIsNotWaitedFor(t *testing.T) {
	n := halves(t, 3, 1)
	n.parts(make([]int, 4))
	n.losing["join"] = 3 // to 2, 3 and 4
	_, ok := n.until(time.Minute, func() bool { return n.actors[0].node.round.phase == joining })
	require.True(t, ok)
	n.crash(1)
	n.begins(1)
	took, ok := n.until(time.Minute, func() bool { return len(n.actors[0].node.group.Members) == 3 })
	require.True(t, ok)
	require.LessOrEqual(t, took, DefaultTiming().Heartbeat+DefaultTiming().Round)
	require.False(t, n.actors[0].node.group.Has(n.actors[1].id))
	n.settles(t)
}

func TestWhoIsLeftOutNeedNotMissTheLeader(t *testing.T) {
	n := halves(t, 2, 2)
	n.drain[3] = DefaultTiming().Drain + DefaultTiming().Heartbeat/2
	n.parts(make([]int, 4))
	_, ok := n.until(time.Minute, func() bool { return n.actors[3].off })
	require.True(t, ok)
	_, ok = n.until(time.Minute, func() bool { return n.actors[3].work.IsZero() })
	require.True(t, ok)
	require.True(t, n.actors[3].node.leads(), "it is the leader of a group of one at once")
	require.Len(t, n.actors[0].node.group.Members, 3)
	n.drain[3] = 0
	n.settles(t)
}
