package kvtest

import (
	"context"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

// What a kv.HandOver refuses.
var oneStepRefusals = []Case{
	{Name: "nothing is handed over in one step to an heir whose safe is vacant", Clause: bothHold, check: whole(nothingIsHandedOverToAnHeirWhoseSafeIsVacant)},
	{Name: "nothing is handed over in one step to an heir that has faded", Clause: bothHold, check: whole(nothingIsHandedOverInOneStepToAnHeirThatHasFaded)},
	{Name: "nothing is handed over in one step to an heir whose record was removed", Clause: bothHold, check: whole(nothingIsHandedOverToAnHeirWhoseRecordWasRemoved), needs: remove},
	{Name: "nothing is handed over in one step to another than the heir", Clause: bothHold, check: whole(nothingIsHandedOverToAnotherThanTheHeir)},
	{Name: "nothing is handed over in one step to an heir whose record has changed", Clause: bothHold, check: whole(nothingIsHandedOverToAnHeirWhoseRecordHasChanged)},
	{Name: "nothing is handed over in one step to an heir whose signature has come back", Clause: bothHold, check: whole(nothingIsHandedOverToAnHeirWhoseSignatureHasComeBack)},
	{Name: "a hand-over in one step at an old revision is refused", Clause: bothHold, check: whole(aHandOverInOneStepAtAnOldRevisionIsRefused)},
	{Name: "a hand-over in one step of what the safe does not hold is refused", Clause: bothHold, check: whole(aHandOverInOneStepOfWhatTheSafeDoesNotHoldIsRefused)},
	{Name: "a hand-over in one step that can never be is invalid", Clause: noHeir, check: whole(aHandOverInOneStepThatCanNeverBeIsInvalid)},
	{Name: "a hand-over in one step to somebody else's lock is invalid", Clause: noHeir + " " + foreignKept, check: whole(aHandOverInOneStepToSomebodyElsesLockIsInvalid), needs: putAndRemove},
	{Name: "a hand-over in one step whose context has ended returns promptly", Clause: contextBounds, check: whole(aHandOverInOneStepWhoseContextHasEndedReturns)},
	{Name: "one of many hand-overs in one step wins", Clause: oneStep, check: whole(oneOfManyHandOversInOneStepWins)},
	{Name: "a hand-over in one step to an heir that gives up meanwhile holds or is refused", Clause: oneStep + " " + bothHold, check: whole(aHandOverInOneStepToAnHeirThatGivesUpHoldsOrIsRefused)},
	{Name: "nobody jumps the line in one step", Clause: unjumped, check: whole(nobodyJumpsTheLineInOneStep), needs: lines},
	{Name: "an heir is first in its own line", Clause: bothHold + " " + firstAlone, check: whole(anHeirIsFirstInItsOwnLine), needs: lines},
}

func nothingIsHandedOverToAnHeirWhoseSafeIsVacant(n *pair) {
	t := n.t
	t.delete(n.s, n.second, n.heir) // which frees what backed it, or leaves that to fade
	n.refused(n.leader, n.heir, kv.ErrStale)
	n.second += "+" // where nobody was
	n.refused(n.leader, n.heir, kv.ErrStale)
	n.leaderGoesOn()
	t.vacant(n.second)
}

// leaderGoesOn requires that the leader has its safe.
func (n *pair) leaderGoesOn() {
	n.t.Helper()
	n.t.holds(n.lead, n.leader)
	n.t.refresh(n.t.s, n.lead, n.leader)
}

func nothingIsHandedOverInOneStepToAnHeirThatHasFaded(n *pair) {
	t := n.t
	t.delete(n.s, n.second, n.heir)
	start := time.Now()
	n.heir = t.succeed(n.s, n.second, t.mortal("I am the heir"))
	t.fades(n.second, n.heir, start, nil)
	n.refused(n.leader, n.heir, kv.ErrStale)
	n.leaderGoesOn()
}

// What backed the heir's record may live on.
func nothingIsHandedOverToAnHeirWhoseRecordWasRemoved(n *pair) {
	n.t.b.Remove(n.t, n.second)
	n.refused(n.leader, n.heir, kv.ErrStale)
	n.leaderGoesOn()
}

func nothingIsHandedOverToAnotherThanTheHeir(n *pair) {
	t, former := n.t, n.heir
	n.heir = t.swap(n.s, n.second, former, t.signed("another heir"))
	n.refused(n.leader, former, kv.ErrStale)
	n.unharmed()
	_, elsewhere := t.held()
	n.refused(n.leader, elsewhere, kv.ErrStale)
	n.unharmed()
}

func nothingIsHandedOverToAnHeirWhoseRecordHasChanged(n *pair) {
	t, former := n.t, n.heir
	n.heir = t.publish(n.s, n.second, former, "ready no more")
	n.refused(n.leader, former, kv.ErrStale)
	n.unharmed()
	n.heir = t.swap(n.s, n.second, n.heir, note.of(n.heir, "shy"))
	n.refused(n.leader, former, kv.ErrStale)
	n.unharmed()
	n.hand()
}

func nothingIsHandedOverToAnHeirWhoseSignatureHasComeBack(n *pair) {
	t, former := n.t, n.heir
	t.delete(n.s, n.second, former)
	n.heir = t.succeed(n.s, n.second, former)
	require.Equal(t, former.Signature, n.heir.Signature)
	n.refused(n.leader, former, kv.ErrStale)
	n.unharmed()
}

func aHandOverInOneStepAtAnOldRevisionIsRefused(n *pair) {
	former := n.leader
	n.leader = n.t.publish(n.t.s, n.lead, former, "changed")
	n.refused(former, n.heir, kv.ErrStale)
	n.unharmed()
	n.hand()
}

func aHandOverInOneStepOfWhatTheSafeDoesNotHoldIsRefused(n *pair) {
	t, former := n.t, n.leader
	n.leader = t.swap(t.s, n.lead, former, t.signed("taken over"))
	n.refused(former, n.heir, kv.ErrStale)
	n.unharmed()
	t.delete(t.s, n.lead, n.leader)
	n.refused(n.leader, n.heir, kv.ErrStale)
	t.vacant(n.lead)
	former = n.leader
	n.leader = t.succeed(t.s, n.lead, former) // the signature comes back
	n.refused(former, n.heir, kv.ErrStale)
	n.unharmed()
}

func aHandOverInOneStepThatCanNeverBeIsInvalid(n *pair) {
	t := n.t
	never := func(old, heir kv.Record) {
		t.Helper()
		n.refused(old, heir, kv.ErrInvalid)
	}
	unsigned, foreign, twin, shared := n.heir, n.heir, n.heir, n.heir
	unsigned.Signature, foreign.Foreign, twin.Signature = "", true, n.leader.Signature
	never(n.leader, unsigned)
	never(n.leader, foreign)
	never(n.leader, twin)
	if shared.Lease = n.leader.Lease; shared.Lease != "" {
		never(n.leader, shared)
	}
	unsigned, foreign = n.leader, n.leader
	unsigned.Signature, foreign.Foreign = "", true
	never(unsigned, n.heir)
	never(foreign, n.heir)
	_, err := n.whole.HandOver(t.ctx, "", n.leader, n.second, n.heir, "")
	require.ErrorIs(t, err, kv.ErrInvalid, "no name")
	_, err = n.whole.HandOver(t.ctx, n.lead, n.leader, "", n.heir, "")
	require.ErrorIs(t, err, kv.ErrInvalid, "no name of the heir's safe")
	n.unharmed()
}

func aHandOverInOneStepToSomebodyElsesLockIsInvalid(n *pair) {
	t := n.t
	t.b.Put(t, n.second, "host-7")
	n.refused(n.leader, t.get(t.s, n.second), kv.ErrInvalid)
	n.refused(n.leader, n.heir, kv.ErrStale)
	t.unharmed(n.second, "host-7")
	n.leaderGoesOn()
	t.b.Put(t, n.lead, "host-8")
	n.refused(n.leader, n.heir, kv.ErrStale)
	t.unharmed(n.lead, "host-8")
}

func aHandOverInOneStepWhoseContextHasEndedReturns(n *pair) {
	t := n.t
	ctx, cancel := context.WithCancel(t.ctx)
	cancel()
	start := time.Now()
	_, err := n.whole.HandOver(ctx, n.lead, n.leader, n.second, n.heir, "handed over")
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, kv.ErrStale)
	require.Less(t, time.Since(start), promptly)
}

func oneOfManyHandOversInOneStepWins(n *pair) {
	t := n.t
	for range 5 {
		won := t.rush(20, kv.ErrStale, func(s kv.Store) (kv.Record, error) {
			whole, _ := s.(kv.HandOver)
			return whole.HandOver(t.ctx, n.lead, n.leader, n.second, n.heir, "handed over")
		})
		require.Len(t, won, 1)
		t.holds(n.lead, won[0])
		t.holds(n.second, n.heir)
		n.leader = t.swap(t.s, n.lead, won[0], t.signed("back again"))
	}
}

// The heir gives up its record, and looks then who has the leader's safe: if that is
// still the leader, no hand-over comes after it.
func aHandOverInOneStepToAnHeirThatGivesUpHoldsOrIsRefused(first *pair) {
	t := first.t
	for i := range 40 {
		n := t.pair(ample)
		ahead := time.Duration(i-20) * t.ttl / 5000
		gaveUp := make(chan error)
		var seen kv.Record
		go func() {
			time.Sleep(-ahead)
			err := n.s.Delete(t.ctx, n.second, n.heir)
			if err == nil {
				seen, err = n.s.Get(t.ctx, n.lead)
			}
			gaveUp <- err
		}()
		time.Sleep(ahead)
		rec, err := n.whole.HandOver(t.ctx, n.lead, n.leader, n.second, n.heir, "handed over")
		require.NoError(t, <-gaveUp, "the heir's delete of its own record, and its look")
		if err != nil {
			require.ErrorIs(t, err, kv.ErrStale)
			rec = n.leader
		}
		require.True(t, seen.Owns(rec), "after the heir's delete %s had the safe, and at last %s", describe(seen), describe(rec))
		t.holds(n.lead, rec)
		t.refresh(t.s, n.lead, rec)
		t.vacant(n.second)
		t.delete(t.s, n.lead, rec)
	}
}

func nobodyJumpsTheLineInOneStep(n *pair) {
	t := n.t
	place := t.join(n.lead, t.signed("v"))
	n.refused(n.leader, n.heir, kv.ErrStale)
	n.unharmed()
	t.stay(n.lead, place, false)
	n.refused(place, n.heir, kv.ErrStale)
	n.unharmed()
	t.delete(t.s, n.lead, place)
	require.Greater(t, n.hand().Token, place.Token)
}

func anHeirIsFirstInItsOwnLine(n *pair) {
	t, first := n.t, n.heir
	n.heir = t.join(n.second, t.signed("the second"))
	n.refused(n.leader, n.heir, kv.ErrStale)
	t.holds(n.lead, n.leader)
	t.holds(n.second, first)
	n.heir, first = first, n.heir
	n.hand()
	t.stay(n.second, first, false)
}
