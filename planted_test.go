package election_test

import (
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/electkv/election/internal/mistake"
	"github.com/electkv/election/internal/oracle"
	"github.com/electkv/election/internal/sim"
)

// A planted bug is a world with an engine that has it, and the rule that must
// find it there.
type planted struct {
	bug     string
	rule    oracle.Rule
	own     scheduled // in place of rule, if it needs to know the schedule
	engine  engines
	healthy engines             // the same without the bug; nil for the real engine
	world   func(*sim.Schedule) // what the bug needs of the world; may be nil
	crack   func(*sim.Schedule) // the bug, if it is in the world; may be nil
}

// Ten classic mistakes, and one for each rule that they leave out; and
// those that only who waits in line can have.
var plantedBugs = []planted{
	{bug: "b1 trust is counted from the receipt", rule: oracle.DeadlineFromSend, engine: seeing(above(mistake.FromReceipt))},
	{bug: "b2 no guard, though the leader's clock has rate 0.9", rule: oracle.OneLeader, engine: guarded(0), healthy: guarded(0.2), world: slowLeaders},
	{bug: "b3 a term is revived after its deadline", rule: oracle.NoResurrection, engine: naive(true), healthy: naive(false), world: plainWorld},
	{bug: "b4 the safe is freed whoever owns it", rule: oracle.OneLeader, engine: seeing(above(mistake.BlindRelease))},
	{bug: "b5 a refresh that does not look at the key", rule: oracle.ProvenExtension, engine: seeing(below(mistake.BlindRefresh))},
	{bug: "b5 the same", rule: oracle.OneLeader, engine: seeing(below(mistake.BlindRefresh))},
	{bug: "b6 a lost create is tried again under a new nonce", rule: oracle.LeaderInTime, engine: seeing(above(mistake.NewNonce)), world: lostCreates},
	{bug: "b7 a token that is reset", rule: oracle.TokensGrow, engine: seeing(resetToken)},
	{bug: "b8 a watch that waits for events only", rule: oracle.LeaderInTime, engine: seeing(eventsOnly)},
	{bug: "b9 the stop is not told after a cancel", rule: oracle.CallbacksPaired, engine: stopNotTold},
	{bug: "b10 a watch is resumed without a look", rule: oracle.LeaderInTime, engine: seeing(resumedBlindly)},

	{bug: "a value that is published counts as a refresh", rule: oracle.DeadlineFromSend, engine: seeing(publishing)},
	{bug: "the same, to the others", rule: oracle.OneLeader, engine: seeing(publishing)},
	{bug: "a safe is never freed", rule: oracle.LeaderInTime, engine: seeing(neverFreed)},
	{bug: "a suspend is not counted", rule: oracle.OneLeader, engine: real, crack: deaf},
	{bug: "whether it leads is told by a message", rule: oracle.WorkWithinTerm, engine: toldLate},
	{bug: "the same, to one who slept", rule: oracle.SleepersNotice, engine: toldLate},
	{bug: "the safe is freed before the work has stopped", rule: oracle.ReleasedMeansStopped, engine: freedEarly},
	{bug: "a watch is left behind", rule: oracle.NothingLeft, engine: leftWatch},
	{bug: "a create that spins", rule: oracle.RequestsBounded, engine: seeing(spinning)},
	{bug: "a foreign record is taken for a vacancy", rule: oracle.ForeignUnharmed, engine: seeing(contemptuous)},
	{bug: "refreshes that do not get through", rule: oracle.LeaderKept, engine: seeing(neverRefreshed)},
	{bug: "work is told late", own: workStops, engine: toldLate},
	{bug: "nobody asks the health check", own: theIllStepDown, engine: carefree},
	{bug: "a resource without a fence", rule: oracle.FenceHolds, engine: real, crack: unfenced},

	{bug: "trust in a place is counted from when its turn is seen", rule: oracle.DeadlineFromSend, engine: inLine(fromTurn), world: lined},
	{bug: "the same of a place, to the others", rule: oracle.OneLeader, engine: inLine(fromTurn), world: lined},
	{bug: "trust in a place is counted from the answer", rule: oracle.DeadlineFromSend, engine: inLine(fromReply), world: lined},
	{bug: "a place is kept whose keeping is not confirmed", rule: oracle.TurnPassed, engine: inLine(credulous), world: oneWay},
	{bug: "who joins jumps the line", rule: oracle.InOrder, engine: real, world: lined, crack: rude},
	{bug: "the same jump, by the tokens", rule: oracle.TokensGrow, engine: real, world: lined, crack: rude},
	{bug: "a vacancy is seen between two places", rule: oracle.InOrder, engine: inLine(hasty), world: lined},
	{bug: "the same vacancy, to the others", rule: oracle.OneLeader, engine: inLine(hasty), world: lined},
	{bug: "places and records count their tokens apart", rule: oracle.TokensGrow, engine: inLine(lateToken), world: lined},
	{bug: "a place outlives its campaign", rule: oracle.TurnPassed, engine: inLine(staying), world: lined},
	{bug: "the same place, to the others", rule: oracle.LeaderInTime, engine: inLine(staying), world: lined},
	{bug: "the same place, where nothing else is wrong", rule: oracle.NothingLeft, engine: inLine(staying), world: leaving},
	{bug: "a candidate waits beside the line", rule: oracle.WaitsInLine, engine: seeing(outside), world: lined},

	{bug: "what is handed over is trusted from its sighting", rule: oracle.DeadlineFromSend, engine: seeing(handedOnSight), world: succeeding},
	{bug: "the same sighting, to the store", rule: oracle.ProvenExtension, engine: seeing(handedOnSight), world: succeeding},
	{bug: "the same sighting, to the others", rule: oracle.OneLeader, engine: seeing(handedOnSight), world: handedLate},
	{bug: "a leader hands over before its work has stopped", rule: oracle.ReleasedMeansStopped, engine: freedEarly, world: succeeding},
	{bug: "a hand-over in two writes", rule: oracle.HandedOver, engine: seeing(inTwoWrites), world: succeeding},
	{bug: "a hand-over of whatever is in the safe", rule: oracle.OneLeader, engine: seeing(above(whateverIsThere)), world: succeedingBadly},
	{bug: "a displaced heir stays", rule: oracle.WaitingIsFree, engine: seeing(stubborn), world: coming},
	{bug: "a transfer that is refused ends the term", rule: oracle.TransferDone, engine: rash, world: toldToTransfer},
	{bug: "a term ends before its call for an heir has arrived", rule: oracle.LeaderInTime, engine: seeing(unawaited), world: toldAtOnce},
	{bug: "whoever asks does not wait", rule: oracle.RequestDone, engine: seeing(hurried), world: askedToResign},
	{bug: "a leader gives way to nobody", rule: oracle.PreferredLeads, engine: choosing(immovable), world: coming},
	{bug: "everybody comes before the leader", rule: oracle.FewChanges, engine: choosing(restless), world: coming},
	{bug: "nobody remembers whose terms ended early", rule: oracle.SmallShare, engine: seeing(above(unstruck)), world: flapping},

	{bug: "who judges takes over whatever is there by then", rule: oracle.OneLeader, engine: cells(overwhelming), world: crowd},
	{bug: "a new revision does not start the time anew", rule: oracle.OneLeader, engine: cells(altering(fromFirstSight)), world: crowd},
	{bug: "a refresh does not change the revision", rule: oracle.OneLeader, engine: real, world: crowd, crack: still},
	{bug: "a record is judged before its time", rule: oracle.OneLeader, engine: judgedBy(impatient), world: crowd},
	{bug: "who judges believes the clock that is ahead", rule: oracle.OneLeader, engine: judgedBy(boldest), world: leaping},
	{bug: "a refresh brings a record back", rule: oracle.ProvenExtension, engine: cells(reviving), world: robbed},
	{bug: "a foreign record is judged", rule: oracle.ForeignUnharmed, engine: judgesForeign, world: crowd},
}

// mostSchedules is how many schedules may be tried until a bug is found.
const mostSchedules = 300

// survived has the schedules in which the real engine kept every promise.
var survived = map[string]bool{}

// A catch is the record of one planted bug.
type catch struct {
	Bug       string `json:"bug"`
	Rule      string `json:"rule"`
	Caught    bool   `json:"caught"`
	Schedules int    `json:"schedules"` // that it took
	Detail    string `json:"detail"`    // what the rule says of the last
}

// Each bug is found by its rule, in the schedules that the real engine survives
// with every promise kept.
func TestEachPlantedBugIsCaughtInTheSimulation(t *testing.T) {
	catches := []catch{}
	for _, p := range plantedBugs {
		t.Run(p.bug+" "+p.finder(), func(t *testing.T) {
			c := p.hunt(t)
			catches = append(catches, c)
			require.Truef(t, c.Caught, "%s finds nothing in %d schedules", c.Rule, c.Schedules)
			t.Logf("caught in schedule %d: %s", c.Schedules, c.Detail)
		})
	}
	results(t, "planted.json", catches)
}

func TestEachRuleHasAPlantedBug(t *testing.T) {
	caught := map[string]bool{}
	for _, p := range plantedBugs {
		caught[p.finder()] = true
	}
	for _, rule := range oracle.All() {
		require.True(t, caught[nameOf(rule)], "no planted bug for %s", nameOf(rule))
	}
	for _, own := range ownRules {
		require.True(t, caught[nameOf(own)], "no planted bug for %s", nameOf(own))
	}
}

// hunt runs schedules with and without the bug until it is found.
func (p planted) hunt(t *testing.T) catch {
	c := catch{Bug: p.bug, Rule: p.finder()}
	healthy := p.healthy
	if healthy == nil {
		healthy = real
	}
	draw := rapid.Custom(drawStored)
	for c.Schedules < mostSchedules && !c.Caught {
		c.Schedules++
		s := draw.Example(c.Schedules)
		if p.world != nil {
			p.world(&s)
		}
		rule := p.rule
		if p.own != nil {
			rule = p.own(s)
		}
		if p.healthy != nil || p.own != nil || !survived[s.String()] { // the same schedules are drawn for many a bug
			well := record(t, uint64(c.Schedules), s, healthy)
			require.Emptyf(t, oracle.Judge(well, append(oracle.All(), rule)...).Broken(), "without the bug, on %s", s.String())
			survived[s.String()] = survived[s.String()] || p.healthy == nil
		}
		if p.crack != nil {
			p.crack(&s)
		}
		found := oracle.Judge(record(t, uint64(c.Schedules), s, p.engine), rule)[0]
		c.Caught, c.Detail = found.Verdict == oracle.Broken, found.Detail
	}
	return c
}

// finder returns the name of the rule that must find the bug.
func (p planted) finder() string {
	if p.own != nil {
		return nameOf(p.own)
	}
	return nameOf(p.rule)
}

// nameOf returns the name of a rule's function.
func nameOf(rule any) string {
	name := runtime.FuncForPC(reflect.ValueOf(rule).Pointer()).Name()
	return name[strings.LastIndexByte(name, '.')+1:]
}
