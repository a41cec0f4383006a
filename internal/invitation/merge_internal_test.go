package invitation

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// whole is a network in which so many processes have been in one group for so long that it
// rests no more.
func whole(t *testing.T, size int) *network {
	n := newNetwork(size, DefaultTiming(), 1, flaws{})
	for i := range n.actors {
		n.begins(i)
	}
	n.settles(t)
	n.run(DefaultTiming().Look * 2)
	return n
}

// settles has all that are alive merge.
func (n *network) settles(t *testing.T) time.Duration {
	t.Helper()
	took, ok := n.until(DefaultTiming().Merged(), n.one)
	require.Empty(t, n.trouble)
	require.True(t, ok, "after %v: %s", took, n.groups())
	return took
}

// counts has time pass and returns how many groups were left and entered.
func (n *network) counts(t *testing.T, d time.Duration) (leaves, enters int) {
	t.Helper()
	leaves, enters = n.leaves, n.enters
	n.run(d)
	require.Empty(t, n.trouble)
	return n.leaves - leaves, n.enters - enters
}

// halves is a network in two parts: so many processes, and then so many, each in one group.
func halves(t *testing.T, a, b int) *network {
	n := newNetwork(a+b, DefaultTiming(), 1, flaws{})
	part := make([]int, a+b)
	for i := a; i < a+b; i++ {
		part[i] = 1
	}
	n.parts(part)
	for i := range n.actors {
		n.begins(i)
	}
	n.run(time.Minute)
	require.Empty(t, n.trouble)
	require.Len(t, n.actors[0].node.group.Members, a)
	require.Len(t, n.actors[a].node.group.Members, b)
	return n
}

func TestTenThatStartTogetherFormOneGroupAtOnce(t *testing.T) {
	n := newNetwork(ten, DefaultTiming(), 1, flaws{})
	for i := range n.actors {
		n.begins(i)
	}
	took := n.settles(t)
	t.Logf("%v, %d messages: %v", took, n.total(), n.sent)
	require.Equal(t, ten, n.enters, "each begins one work, and no other before")
	require.Less(t, took, DefaultTiming().patience())
}

func TestMembersThatLoseTheirLeaderStartAnewTogether(t *testing.T) {
	n := whole(t, ten)
	n.crash(0)
	leaves, enters := n.leaves, n.enters
	took := n.settles(t)
	t.Logf("%v", took)
	require.Less(t, took, DefaultTiming().Silence()+DefaultTiming().patience())
	require.Equal(t, ten-1, n.leaves-leaves)
	require.Equal(t, ten-1, n.enters-enters, "nobody begins work alone meanwhile")
	require.Equal(t, ID("02"), n.actors[1].node.group.Leader())
}

func TestALeaderThatQuitsIsNotWaitedFor(t *testing.T) {
	n := whole(t, ten)
	n.sync(0)
	n.step(0, Event{Kind: Quit})
	n.run(100 * time.Millisecond)
	require.True(t, n.actors[0].node.Done())
	n.crash(0)
	require.Less(t, n.settles(t), DefaultTiming().patience())
}

func TestAMemberThatIsLostIsLeftOut(t *testing.T) {
	n := whole(t, ten)
	n.crash(9)
	clear(n.sent)
	n.settles(t)
	n.run(DefaultTiming().Heartbeat / 2)
	n.sent["alive"] -= n.sent["heartbeat"] - DefaultTiming().Misses // of those before
	delete(n.sent, "heartbeat")
	require.Equal(t, map[string]int{"probe": 1, "join": 8, "ready": 8, "formed": 8, "alive": 8}, n.sent)
	says(t, "4·(n−2) + 1")
	leaves, enters := n.counts(t, 10*time.Minute)
	require.Zero(t, leaves+enters)
}

func TestAMemberThatRestartsIsBackAfterOneChange(t *testing.T) {
	n := whole(t, ten)
	leaves := n.leaves
	n.crash(9)
	n.run(100 * time.Millisecond)
	n.begins(9)
	n.settles(t)
	require.Equal(t, 9, n.leaves-leaves, "nobody stops twice")
}

func TestANewcomerJoinsAGroupThatHasRested(t *testing.T) {
	n := whole(t, ten)
	n.sync(9)
	n.step(9, Event{Kind: Quit})
	n.run(time.Second)
	n.crash(9)
	n.run(time.Minute)
	n.begins(9)
	enters := n.enters
	require.Less(t, n.settles(t), DefaultTiming().patience())
	require.Equal(t, ten, n.enters-enters)
}

// says looks whether the documentation has a figure.
func says(t *testing.T, figure string) {
	t.Helper()
	text, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	require.Contains(t, string(text), figure)
}

func TestAMergeTakesTheMessagesThatAreWrittenDown(t *testing.T) {
	says(t, "4·a + 8·b − 4 messages, and\n// 2·a more if the smaller one probes first")
	for a := 1; a <= 5; a++ {
		for b := 1; b <= a; b++ {
			for _, first := range []int{0, a} {
				sent := mergeOf(t, a, b, first)
				others, more := a+b-1, 0
				if first == a {
					more = a
				}
				require.Equal(t, map[string]int{
					"probe": b + more, "answer": b + more, "invite": b, "accept": b,
					"join": others, "ready": others, "formed": others, "alive": others,
				}, sent, "%d and %d, %d probes first", a, b, first)
				total := 0
				for _, n := range sent {
					total += n
				}
				require.Equal(t, 4*a+8*b-4+2*more, total)
			}
		}
	}
}

// mergeOf has a group of a and one of b merge when that of the first looks, and returns the messages.
func mergeOf(t *testing.T, a, b, first int) map[string]int {
	n := halves(t, a, b)
	one, other := &n.actors[first].node, &n.actors[a-first].node
	_, ok := n.until(time.Hour, func() bool {
		soon := one.round.phase == idle && one.next > n.now+time.Second && one.next < n.now+2*time.Second
		return soon && other.round.phase == idle && other.next > n.now+3*time.Second && n.now+time.Second > n.actors[0].node.rests
	})
	require.True(t, ok)
	n.parts(make([]int, a+b))
	clear(n.sent)
	n.settles(t)
	n.run(50 * time.Millisecond)
	n.sent["alive"] -= n.sent["heartbeat"] // of the old groups meanwhile
	delete(n.sent, "heartbeat")
	return n.sent
}

func TestAQuietGroupCostsAHeartbeatAndAnAnswerPerMember(t *testing.T) {
	says(t, "2·(n−1)")
	n := whole(t, ten)
	clear(n.sent)
	leaves, enters := n.counts(t, 100*time.Second)
	require.Zero(t, leaves+enters)
	require.Equal(t, map[string]int{"heartbeat": 100 * (ten - 1), "alive": 100 * (ten - 1)}, n.sent)
}

func TestALeaderProbesWhomItCannotReachSeldom(t *testing.T) {
	n := halves(t, 6, 4)
	clear(n.sent)
	leaves, enters := n.counts(t, 1000*time.Second)
	require.Zero(t, leaves+enters)
	looks := int(1000*time.Second/DefaultTiming().Look) + 1
	require.LessOrEqual(t, n.sent["probe"], looks*(4+6))
	require.Greater(t, n.sent["probe"], looks*(4+6)/2)
	require.Zero(t, n.sent["answer"])
}

func TestOnlyARoundTripStopsWork(t *testing.T) {
	for from := range 3 {
		for to := range 3 {
			if from == to {
				continue
			}
			n := newNetwork(3, DefaultTiming(), 1, flaws{})
			n.deaf[[2]int{from, to}] = true
			for i := range n.actors {
				n.begins(i)
			}
			n.run(DefaultTiming().Merged())
			clear(n.sent)
			leaves, enters := n.counts(t, 10*time.Minute)
			require.Zero(t, leaves+enters, "%d is not heard by %d: %s", from, to, n.groups())
			t.Logf("%d is not heard by %d: %s, %v in 10 minutes", from+1, to+1, n.groups(), n.sent)
		}
	}
}

// Whichever messages never arrive, groups come to rest: each has a leader that reaches all its
// members and is reached by them.
func TestGroupsComeToRestInEveryStaticNetwork(t *testing.T) {
	networks := uint64(200)
	if testing.Short() {
		networks = 40
	}
	for seed := range networks {
		n := newNetwork(6, DefaultTiming(), seed, flaws{})
		share := n.random.Float64() * 0.7
		n.latency = func() time.Duration {
			return time.Millisecond + time.Duration(n.random.Int64N(int64(20*time.Millisecond)))
		}
		for i := range n.actors {
			n.begins(i)
		}
		if seed%2 == 0 { // they know each other, and are then cut apart
			n.run(time.Minute)
		}
		for i := range n.actors {
			for j := range n.actors {
				n.deaf[[2]int{i, j}] = n.random.Float64() < share
			}
		}
		n.run(3 * DefaultTiming().Merged())
		leaves, enters := n.counts(t, 5*time.Minute)
		require.Zero(t, leaves+enters, "seed %d: %s", seed, n.groups())
	}
}

// changes is how many times a group may take a process in within a time, and lose it again.
func changes(d time.Duration) int {
	return 2 * (mostDoublings + 1 + int(d/DefaultTiming().wait(mostDoublings+1)))
}

func TestAProcessThatCrashesAgainAndAgainStopsTheOthersSeldom(t *testing.T) {
	n := whole(t, 5)
	leaves := 0
	n.told = func(i int, e Effect) {
		if n.hears(i, e); e.Kind == Leave && i == 0 {
			leaves++
		}
	}
	for range 200 {
		n.crash(4)
		n.run(time.Second)
		n.begins(4)
		n.run(2 * time.Second)
	}
	require.Empty(t, n.trouble)
	t.Logf("it has crashed 200 times in 10 minutes, and the others have stopped %d times", leaves)
	require.LessOrEqual(t, leaves, changes(10*time.Minute))
	n.settles(t)
}

func TestALinkThatLosesMostStopsTheOthersSeldom(t *testing.T) {
	n := whole(t, 5)
	lossy := n.post
	n.post = func(f flight) {
		if (f.from == 4 || f.to == 4) && n.random.Float64() < 0.6 {
			return
		}
		lossy(f)
	}
	before := n.leaves
	n.run(time.Hour)
	require.Empty(t, n.trouble)
	t.Logf("in an hour each has stopped %.1f times", float64(n.leaves-before)/5)
	require.LessOrEqual(t, (n.leaves-before)/5, changes(time.Hour))
	n.post = lossy
	n.settles(t)
}

func TestAPauseThatIsShorterThanTheSilenceChangesNothing(t *testing.T) {
	for i := range 3 {
		n := whole(t, 3)
		n.asleep[i] = true
		leaves, enters := n.counts(t, time.Duration(DefaultTiming().Misses-1)*DefaultTiming().Heartbeat)
		n.wakes(i)
		l, e := n.counts(t, time.Minute)
		require.Zero(t, leaves+enters+l+e, "%d was paused", i)
	}
}

func TestWorkThatDoesNotStopInTimeIsLeftOut(t *testing.T) {
	for slow := range 3 {
		n := halves(t, 2, 1)
		n.drain[slow] = DefaultTiming().Drain + 20*time.Second
		n.parts([]int{0, 0, 0})
		took, ok := n.until(time.Minute, func() bool {
			a, b := n.actors[(slow+1)%3].node.group, n.actors[(slow+2)%3].node.group
			return len(a.Members) == 2 && a.Number == b.Number && !a.Has(n.actors[slow].id) && n.actors[(slow+1)%3].in == a.Number
		})
		require.Empty(t, n.trouble)
		require.True(t, ok, "%d is slow: %s", slow, n.groups())
		require.LessOrEqual(t, took, DefaultTiming().Drain+2*DefaultTiming().Look+DefaultTiming().patience(), "%d is slow", slow)
		n.drain[slow] = 0
		n.settles(t)
	}
}

func TestLostMessagesOfEachKindDelayAMerge(t *testing.T) {
	for _, kind := range []string{"probe", "answer", "invite", "accept", "join", "ready", "formed", "alive", "heartbeat", "gone"} {
		n := halves(t, 3, 2)
		n.parts(make([]int, 5))
		n.losing[kind] = 2
		took := n.settles(t)
		leaves, enters := n.counts(t, time.Minute)
		require.Zero(t, leaves+enters, kind)
		t.Logf("two lost of %s: %v", kind, took)
	}
}

func TestAsManyProcessesAsThereMayBeFormOneGroupAtOnce(t *testing.T) {
	n := newNetwork(MaxMembers, DefaultTiming(), 1, flaws{})
	for i := range n.actors {
		n.begins(i)
	}
	took := n.settles(t)
	t.Logf("%d processes: %v, %d messages", MaxMembers, took, n.total())
	require.Equal(t, MaxMembers, n.enters)
}

// leading is a turn of "m00", which leads so many.
func leading(size int) turn {
	n := New(Config{"m00", DefaultTiming()})
	n.stage, n.entered, n.group = running, true, Group{Number{"m00", 1, 1}, crowd("m", size)}
	for _, id := range n.group.Members[1:] {
		n.voices = append(n.voices, voice{id: id, confirmed: true})
	}
	return turn{Node: &n}
}

func crowd(prefix string, size int) []ID {
	var all []ID
	for i := range size {
		all = append(all, ID(fmt.Sprintf("%s%02d", prefix, i)))
	}
	return all
}

// found is a group whose leader comes first.
func found(members ...ID) Group { return Group{Number{members[0], 1, 1}, members} }

func TestNobodyInvitesMoreThanAGroupMayHave(t *testing.T) {
	tn := leading(MaxMembers - 20)
	tn.invite([]Group{found(crowd("n", 15)...), found(crowd("o", 6)...), found(crowd("p", 5)...)})
	require.Len(t, tn.round.asked, 20)
	require.Len(t, tn.round.found, 2)
}

func TestWhoIsSeenTwiceIsNotInvited(t *testing.T) {
	tn := leading(4)
	tn.invite([]Group{found("n00", "n01"), found("o00", "m03"), found("p00", "n01"), found("q00")})
	require.Equal(t, []Group{found("n00", "n01"), found("q00")}, tn.round.found)
	tn = leading(4)
	tn.lose(&tn.voices[2])
	tn.invite([]Group{found("o00", "m03")})
	require.Len(t, tn.round.asked, 2, "a member that is lost may be in another group")
}

// A member that has not entered the group yet would say that it is in none, and mean the next.
func TestAGroupDoesNotChangeBeforeAllHaveEnteredIt(t *testing.T) {
	tn := leading(3)
	tn.now, tn.beat = time.Second, time.Hour
	tn.voices[1].confirmed = false
	tn.lose(&tn.voices[0])
	require.False(t, tn.settle(), "one is lost, and the other has not heard")
	tn.receive("m02", Alive{tn.group.Number})
	require.True(t, tn.settle())
	require.Equal(t, looking, tn.round.phase)
}

func TestProcessesThatBecomeKnownAreLookedFor(t *testing.T) {
	n := newNetwork(3, DefaultTiming(), 1, flaws{})
	for i := range n.actors {
		n.begins(i)
		n.step(i, Event{Kind: Peers, Peers: []ID{"1", "2"}})
	}
	n.run(time.Minute)
	require.Equal(t, []ID{"1", "2"}, n.actors[0].node.group.Members)
	n.sync(0)
	n.step(0, Event{Kind: Peers, Peers: n.ids()})
	require.Less(t, n.settles(t), DefaultTiming().Look)
	n.sync(0)
	n.step(0, Event{Kind: Peers, Peers: []ID{"1", "2"}})
	leaves, enters := n.counts(t, time.Minute)
	require.Zero(t, leaves+enters, "a member that is not listed any more stays as long as it answers")
}
