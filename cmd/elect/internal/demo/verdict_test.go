//go:build unix

package demo_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/cmd/elect/internal/demo"
	"github.com/electkv/election/cmd/elect/internal/order"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
)

// A record is a history in the making: times are in seconds.
type record []history.Event

func (r record) add(at float64, e history.Event) record {
	e.At = time.Duration(at * float64(time.Second))
	return append(r, e)
}

func (r record) stands(at float64, who string) record {
	return r.add(at, history.Event{Who: who, Kind: history.Ready}).is(at, who, "candidate")
}

func (r record) is(at float64, who, role string) record {
	return r.add(at, history.Event{Who: who, Kind: history.Became, Value: role})
}

// leads has a candidate lead from when it becomes so until it gives up.
func (r record) leads(from, to float64, who string, token uint64) record {
	return r.led(from, to, who, token, "election: resigned: asked to")
}

// loses has a candidate lead until it loses its term.
func (r record) loses(from, to float64, who string, token uint64) record {
	return r.led(from, to, who, token, "election: leadership lost: not refreshed in time")
}

func (r record) led(from, to float64, who string, token uint64, cause string) record {
	r = r.is(from, who, "leader")
	r = r.add(from, history.Event{Who: who, Kind: history.Elected, Token: token, Until: time.Hour})
	return r.add(to, history.Event{Who: who, Kind: history.Ended, Token: token, Text: cause})
}

func (r record) holds(at float64, token uint64) record {
	return r.add(at, history.Event{Kind: history.Holds, Token: token})
}

func (r record) judge(rule oracle.Rule) oracle.Finding {
	h := history.History{About: history.About{TTL: 2 * time.Second, Slack: time.Second}, Events: r}
	return oracle.Judge(h, rule)[0]
}

// handedOver is a history in which a hands over to b, who was next.
func handedOver() record {
	return record{}.
		stands(0, "a").is(0.1, "a", "heir").leads(0.2, 5, "a", 1).holds(0.2, 1).
		stands(1, "b").is(1.1, "b", "heir").holds(5.1, 2).leads(5.2, 9, "b", 2)
}

func TestOnlyHeirsAreToBeElected(t *testing.T) {
	require.Equal(t, oracle.Kept, handedOver().judge(demo.OnlyHeirs).Verdict)
	require.Equal(t, oracle.Kept, handedOver().is(0.15, "a", "candidate").judge(demo.OnlyHeirs).Verdict, "nobody was there before the first")
	require.Equal(t, oracle.Silent, record{}.stands(0, "a").is(0.1, "a", "heir").leads(1, 2, "a", 1).judge(demo.OnlyHeirs).Verdict)

	found := handedOver().stands(1, "c").leads(9.1, 10, "c", 3).judge(demo.OnlyHeirs)
	require.Equal(t, oracle.Broken, found.Verdict)
	require.Equal(t, "c was elected as candidate", found.Detail)

	found = handedOver().is(4, "b", "candidate").judge(demo.OnlyHeirs)
	require.Equal(t, oracle.Broken, found.Verdict, "it was heir once, but not when it was elected")
}

func TestALeaderThatHasLostItsTermMayComeBack(t *testing.T) {
	parts := []demo.Part{{ID: "a", Order: order.Rank, Rank: 1}, {ID: "b", Order: order.Rank, Rank: 2}, {ID: "c", Order: order.Rank, Rank: 3}}
	asked := record{}.stands(0, "a").leads(0.2, 2, "a", 1).
		stands(1, "b").is(1.1, "b", "heir").loses(2.1, 5, "b", 2).is(5, "b", "candidate").
		stands(1.5, "c").add(4, history.Event{Who: "b", Kind: history.Asked, Value: "a"})
	for who, verdict := range map[string]oracle.Verdict{"b": oracle.Kept, "c": oracle.Broken} {
		played := asked.leads(6, 7, who, 3)
		require.Equal(t, verdict, played.judge(demo.OnlyHeirs).Verdict, who)
		require.Equal(t, oracle.Kept, played.judge(demo.RightNext(parts)).Verdict, "%s: what it was asked is over with its term", who)
	}
	alone := record{}.stands(0, "a").loses(0.2, 2, "a", 1).is(2, "a", "candidate").leads(3, 4, "a", 2)
	for _, rule := range []oracle.Rule{demo.OnlyHeirs, demo.RightNext(parts)} {
		require.Equal(t, oracle.Silent, alone.judge(rule).Verdict)
	}

	resigned := record{}.stands(0, "a").leads(0.2, 2, "a", 1).is(2, "a", "candidate").leads(3, 4, "a", 2)
	require.Equal(t, oracle.Broken, resigned.judge(demo.OnlyHeirs).Verdict)
}

func TestAHandoverIsToLeaveTheSafeNeverEmpty(t *testing.T) {
	require.Equal(t, oracle.Kept, handedOver().judge(demo.NeverEmpty(1)).Verdict)
	require.Equal(t, oracle.Silent, handedOver().judge(demo.NeverEmpty(2)).Verdict)
	require.Equal(t, oracle.Kept, handedOver().holds(2, 1).judge(demo.NeverEmpty(1)).Verdict, "a value was published")

	found := handedOver().holds(5.05, 0).judge(demo.NeverEmpty(1))
	require.Equal(t, oracle.Broken, found.Verdict)
	require.Equal(t, "from a to b: the safe was empty for 50ms", found.Detail)

	found = handedOver().holds(5.05, 7).judge(demo.NeverEmpty(1))
	require.Equal(t, oracle.Broken, found.Verdict)
	require.Equal(t, "from a to b: token 7 came between", found.Detail)

	blind := record{}.stands(0, "a").leads(0.2, 5, "a", 1).stands(1, "b").leads(5.2, 9, "b", 2)
	require.Equal(t, oracle.Broken, blind.judge(demo.NeverEmpty(1)).Verdict, "nobody watched")

	crashed := record{}.
		stands(0, "a").leads(0.2, 8, "a", 1).holds(0.2, 1).stands(1, "b").
		add(5, history.Event{Who: "a", Kind: history.Killed}).holds(6, 0).holds(6.1, 2).leads(6.2, 9, "b", 2)
	require.Equal(t, oracle.Silent, crashed.judge(demo.NeverEmpty(1)).Verdict, "who is killed hands over to nobody")
}

func TestWhoLeadsIsToBeTheOneWhomTheOrderPutsFirst(t *testing.T) {
	parts := []demo.Part{{ID: "a", Order: order.Rank, Rank: 1}, {ID: "b", Order: order.Rank, Rank: 2}, {ID: "c", Order: order.Rank, Rank: 3}}
	require.Equal(t, oracle.Kept, handedOver().judge(demo.RightNext(parts)).Verdict)
	require.Equal(t, oracle.Silent, record{}.stands(0, "a").leads(1, 2, "a", 1).judge(demo.RightNext(parts)).Verdict)

	found := handedOver().stands(1, "c").judge(demo.RightNext(parts))
	require.Equal(t, oracle.Broken, found.Verdict)
	require.Equal(t, "after a came b, and c was before", found.Detail)
	require.Equal(t, oracle.Kept, handedOver().stands(3.1, "c").judge(demo.RightNext(parts)).Verdict, "it has stood for less than a TTL")
	for _, fate := range []history.Kind{history.Killed, history.Stopped} {
		gone := handedOver().stands(1, "c").add(3, history.Event{Who: "c", Kind: fate})
		require.Equal(t, oracle.Kept, gone.judge(demo.RightNext(parts)).Verdict)
	}

	asked := func(to string) oracle.Finding {
		return handedOver().stands(1, "c").add(4, history.Event{Who: "a", Kind: history.Asked, Value: to}).judge(demo.RightNext(parts))
	}
	require.Equal(t, oracle.Kept, asked("b").Verdict)
	require.Equal(t, oracle.Broken, asked("c").Verdict)
	require.Equal(t, "a was asked to hand over to c, and b led", asked("c").Detail)
}

func TestTheListOfALeaderIsHandedOn(t *testing.T) {
	parts := []demo.Part{{ID: "a", Order: order.List, Heirs: []string{"b", "c"}}, {ID: "b", Order: order.List}, {ID: "c", Order: order.List}, {ID: "d", Order: order.List}}
	played := func(third string) oracle.Finding {
		return handedOver().stands(1, "d").stands(2, "c").leads(9.1, 10, third, 3).judge(demo.RightNext(parts))
	}
	require.Equal(t, oracle.Kept, played("c").Verdict)
	require.Equal(t, "after b came d, and c was before", played("d").Detail)
}

func TestEachIsToLeadInTurn(t *testing.T) {
	require.Equal(t, oracle.Kept, handedOver().judge(demo.InTurn("a", "b")).Verdict)
	found := handedOver().judge(demo.InTurn("a", "c"))
	require.Equal(t, oracle.Broken, found.Verdict)
	require.Equal(t, "it was to be a, c, and was a, b", found.Detail)
	require.Equal(t, oracle.Broken, handedOver().judge(demo.InTurn("a")).Verdict)
}

func TestTheHighestIsToLeadInTimeAndAtLast(t *testing.T) {
	require.Equal(t, oracle.Kept, handedOver().judge(demo.InTimeByRank("b", 4*time.Second)).Verdict)
	require.Equal(t, oracle.Silent, handedOver().judge(demo.InTimeByRank("c", 4*time.Second)).Verdict)
	for what, found := range map[string]oracle.Finding{
		"b led 4.20 s after it was ready; promised within 3s, and 1s for a slow machine": handedOver().judge(demo.InTimeByRank("b", 3*time.Second)),
		"b never led after it was woken":                                                 handedOver().add(10, history.Event{Who: "b", Kind: history.Woken}).judge(demo.InTimeByRank("b", 4*time.Second)),
		"b did not lead at last":                                                         handedOver().leads(9.1, 10, "a", 3).judge(demo.InTimeByRank("b", 4*time.Second)),
	} {
		require.Equal(t, oracle.Broken, found.Verdict)
		require.Equal(t, what, found.Detail)
	}
}
