package planted

import (
	"github.com/electkv/election/internal/mistake"
	"github.com/electkv/election/internal/oracle"
	"github.com/electkv/election/internal/simulation"
)

// Ten classic mistakes, and one for each rule that they leave out; and
// those that only candidates in a line can have.
var bugs = []bug{
	{name: "b1 trust is counted from the receipt", rule: oracle.DeadlineFromSend, engine: seeing(above(mistake.FromReceipt))},
	{name: "b2 no guard, though the leader's clock has rate 0.9", rule: oracle.OneLeader, engine: guarded(0), healthy: guarded(0.2), world: slowLeaders},
	{name: "b3 a term is revived after its deadline", rule: oracle.NoResurrection, engine: naive(true), healthy: naive(false), world: plainWorld},
	{name: "b4 the safe is freed whoever owns it", rule: oracle.OneLeader, engine: seeing(above(mistake.BlindRelease))},
	{name: "b5 a refresh that does not look at the key", rule: oracle.ProvenExtension, engine: seeing(below(mistake.BlindRefresh))},
	{name: "b5 the same", rule: oracle.OneLeader, engine: seeing(below(mistake.BlindRefresh))},
	{name: "b6 a lost create is tried again under a new nonce", rule: oracle.LeaderInTime, engine: seeing(above(mistake.NewNonce)), world: lostCreates},
	{name: "b7 a token that is reset", rule: oracle.TokensGrow, engine: seeing(resetToken)},
	{name: "b8 a watch that waits for events only", rule: oracle.LeaderInTime, engine: seeing(eventsOnly)},
	{name: "b9 the stop is not told after a cancel", rule: oracle.CallbacksPaired, engine: stopNotTold},
	{name: "b10 a watch is resumed without a look", rule: oracle.LeaderInTime, engine: seeing(resumedBlindly)},

	{name: "a value that is published counts as a refresh", rule: oracle.DeadlineFromSend, engine: seeing(publishing)},
	{name: "the same, to the others", rule: oracle.OneLeader, engine: seeing(publishing)},
	{name: "a safe is never freed", rule: oracle.LeaderInTime, engine: seeing(neverFreed)},
	{name: "a suspend is not counted", rule: oracle.OneLeader, engine: simulation.Real, crack: deaf},
	{name: "whether it leads is told by a message", rule: oracle.WorkWithinTerm, engine: toldLate},
	{name: "the same, to one who slept", rule: oracle.SleepersNotice, engine: toldLate},
	{name: "the safe is freed before the work has stopped", rule: oracle.ReleasedMeansStopped, engine: freedEarly},
	{name: "a watch is left behind", rule: oracle.NothingLeft, engine: seeing(leftWatch)},
	{name: "a create that spins", rule: oracle.RequestsBounded, engine: seeing(spinning)},
	{name: "a foreign record is taken for a vacancy", rule: oracle.ForeignUnharmed, engine: seeing(contemptuous)},
	{name: "refreshes that do not get through", rule: oracle.LeaderKept, engine: seeing(neverRefreshed)},
	{name: "work is told late", own: simulation.WorkStops, engine: toldLate},
	{name: "nobody asks the health check", own: simulation.TheIllStepDown, engine: carefree},
	{name: "a resource without a fence", rule: oracle.FenceHolds, engine: simulation.Real, crack: unfenced},

	{name: "trust in a place is counted from when its turn is seen", rule: oracle.DeadlineFromSend, engine: inLine(fromTurn), world: lined},
	{name: "the same of a place, to the others", rule: oracle.OneLeader, engine: inLine(fromTurn), world: lined},
	{name: "trust in a place is counted from the answer", rule: oracle.DeadlineFromSend, engine: inLine(fromReply), world: lined},
	{name: "a place is kept whose keeping is not confirmed", rule: oracle.TurnPassed, engine: inLine(credulous), world: oneWay},
	{name: "who joins jumps the line", rule: oracle.InOrder, engine: simulation.Real, world: lined, crack: rude},
	{name: "the same jump, by the tokens", rule: oracle.TokensGrow, engine: simulation.Real, world: lined, crack: rude},
	{name: "a vacancy is seen between two places", rule: oracle.InOrder, engine: simulation.Seeing(hasty), world: lined},
	{name: "the same vacancy, to the others", rule: oracle.OneLeader, engine: simulation.Seeing(hasty), world: lined},
	{name: "places and records count their tokens apart", rule: oracle.TokensGrow, engine: inLine(lateToken), world: lined},
	{name: "a place outlives its campaign", rule: oracle.TurnPassed, engine: inLine(staying), world: lined},
	{name: "the same place, to the others", rule: oracle.LeaderInTime, engine: inLine(staying), world: lined},
	{name: "the same place, where nothing else is wrong", rule: oracle.NothingLeft, engine: inLine(staying), world: leaving},
	{name: "a candidate waits beside the line", rule: oracle.WaitsInLine, engine: simulation.Seeing(outside), world: lined},

	{name: "what is handed over is trusted from its sighting", rule: oracle.DeadlineFromSend, engine: seeing(handedOnSight), world: succeeding},
	{name: "the same sighting, to the store", rule: oracle.ProvenExtension, engine: seeing(handedOnSight), world: succeeding},
	{name: "the same sighting, to the others", rule: oracle.OneLeader, engine: seeing(handedOnSight), world: handedLate},
	{name: "a leader hands over before its work has stopped", rule: oracle.ReleasedMeansStopped, engine: freedEarly, world: succeeding},
	{name: "a hand-over in two writes", rule: oracle.HandedOver, engine: seeing(inTwoWrites), world: succeeding},
	{name: "a hand-over of whatever is in the safe", rule: oracle.OneLeader, engine: seeing(above(whateverIsThere)), world: succeedingBadly},
	{name: "a displaced heir stays", rule: oracle.WaitingIsFree, engine: seeing(stubborn), world: coming},
	{name: "a transfer that is refused ends the term", rule: oracle.TransferDone, engine: rash, world: toldToTransfer},
	{name: "a term ends before its call for an heir has arrived", rule: oracle.LeaderInTime, engine: seeing(unawaited), world: toldAtOnce},
	{name: "whoever asks does not wait", rule: oracle.RequestDone, engine: seeing(hurried), world: askedToResign},
	{name: "a leader gives way to nobody", rule: oracle.PreferredLeads, engine: choosing(immovable), world: coming},
	{name: "everybody comes before the leader", rule: oracle.FewChanges, engine: choosing(restless), world: coming},
	{name: "nobody remembers whose terms ended early", rule: oracle.SmallShare, engine: seeing(above(unstruck)), world: flapping},

	{name: "who judges takes over whatever is there by then", rule: oracle.OneLeader, engine: cells(overwhelming), world: crowd},
	{name: "a new revision does not start the time anew", rule: oracle.OneLeader, engine: cells(altering(fromFirstSight)), world: crowd},
	{name: "a refresh does not change the revision", rule: oracle.OneLeader, engine: simulation.Real, world: crowd, crack: still},
	{name: "a record is judged before its time", rule: oracle.OneLeader, engine: judgedBy(impatient), world: crowd},
	{name: "who judges believes the clock that is ahead", rule: oracle.OneLeader, engine: judgedBy(boldest), world: leaping},
	{name: "a refresh brings a record back", rule: oracle.ProvenExtension, engine: cells(reviving), world: robbed},
	{name: "a foreign record is judged", rule: oracle.ForeignUnharmed, engine: judgesForeign, world: crowd},
}
