package kvtest

import (
	"context"
	"errors"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

const (
	vacates       = "Vacate empties the safe called name as Delete does, if the safe called place is vacant."
	heldByAnHeir  = "If the safe called place holds any live record, Vacate returns that record and ErrHeld, and nothing happened."
	vacateStale   = "Vacate returns ErrStale if the safe called name does not hold rec."
	vacateOneStep = "Both conditions and the write of Vacate are one atomic step of the store."
	noVacate      = "Vacate returns an error that matches errors.ErrUnsupported if the store cannot do this in one step for these two safes. Then nothing happened."
)

// The cases of a kv.Vacate. A store that is none skips them, but for the first.
var vacateCases = []Case{
	{Name: "a store that vacates nothing in one step says so", Clause: noVacate, check: aStoreThatVacatesNothingInOneStepSaysSo},
	{Name: "a safe is vacated in one step if there is no heir", Clause: vacates, check: vacated(aSafeIsVacatedIfThereIsNoHeir)},
	{Name: "a safe is not vacated in one step while there is an heir", Clause: heldByAnHeir, check: vacated(aSafeIsNotVacatedWhileThereIsAnHeir)},
	{Name: "a safe is not vacated in one step while somebody else's lock is in the heir's", Clause: heldByAnHeir + " " + foreignKept, check: vacated(aSafeIsNotVacatedWhileSomebodyElsesLockIsInTheHeirs), needs: putAndRemove},
	{Name: "a safe is vacated in one step once the heir has faded", Clause: vacates, check: vacated(aSafeIsVacatedOnceTheHeirHasFaded)},
	{Name: "what the safe does not hold is not vacated in one step", Clause: vacateStale + " ErrStale: had no effect.", check: vacated(whatTheSafeDoesNotHoldIsNotVacated)},
	{Name: "a safe is vacated in one step before an heir comes or not at all", Clause: vacateOneStep, check: vacated(aSafeIsVacatedBeforeAnHeirComesOrNotAtAll)},
	{Name: "a vacate whose context has ended returns promptly", Clause: contextBounds, check: vacated(aVacateWhoseContextHasEndedReturns)},
}

// vacated makes a check of one that needs a store which vacates in one step.
func vacated(check func(*pair)) func(*trial) {
	return func(t *trial) {
		n := t.pair(ample)
		if _, err := n.vacate(n.leader); errors.Is(err, errors.ErrUnsupported) {
			t.Skip("the store vacates nothing in one step")
		}
		check(n)
	}
}

// vacate asks the leader's store to vacate its safe.
func (n *pair) vacate(rec kv.Record) (kv.Record, error) {
	s, ok := n.t.s.(kv.Vacate)
	if !ok {
		return kv.Record{}, errors.ErrUnsupported
	}
	return s.Vacate(n.t.ctx, n.lead, rec, n.second)
}

// gone requires that the leader's safe is vacated.
func (n *pair) gone() {
	n.t.Helper()
	heir, err := n.vacate(n.leader)
	require.NoError(n.t, err, "vacate %.80q", n.lead)
	require.Zero(n.t, heir)
	n.t.vacant(n.lead)
	n.t.disowned(n.t.s, n.lead, n.leader)
}

// stays requires that the leader's safe is not vacated, for the record that is in the heir's.
func (n *pair) stays(rec kv.Record) {
	n.t.Helper()
	heir, err := n.vacate(n.leader)
	require.ErrorIs(n.t, err, kv.ErrHeld, "it returned %s", describe(heir))
	require.Equal(n.t, rec, heir)
	n.leaderGoesOn()
}

func aStoreThatVacatesNothingInOneStepSaysSo(t *trial) {
	n := t.pair(ample)
	if _, err := n.vacate(n.leader); errors.Is(err, errors.ErrUnsupported) {
		n.unharmed()
		t.delete(n.s, n.second, n.heir)
		_, err := n.vacate(n.leader)
		require.ErrorIs(t, err, errors.ErrUnsupported)
		n.leaderGoesOn()
	}
}

func aSafeIsVacatedIfThereIsNoHeir(n *pair) {
	t := n.t
	t.delete(n.s, n.second, n.heir)
	n.gone()
	t.vacant(n.second)
	last := n.leader
	n.leader = t.succeed(t.s, n.lead, t.signed("the next"))
	require.Greater(t, n.leader.Token, last.Token)
	n.second += "+" // where nobody was
	n.gone()
}

func aSafeIsNotVacatedWhileThereIsAnHeir(n *pair) {
	n.stays(n.heir)
	n.heir = n.t.publish(n.s, n.second, n.heir, "ready")
	n.stays(n.heir)
	n.unharmed()
	n.hand()
}

func aSafeIsNotVacatedWhileSomebodyElsesLockIsInTheHeirs(n *pair) {
	t := n.t
	t.b.Put(t, n.second, "host-7")
	n.stays(t.get(t.s, n.second))
	t.unharmed(n.second, "host-7")
	t.b.Remove(t, n.second)
	n.gone()
}

func aSafeIsVacatedOnceTheHeirHasFaded(n *pair) {
	t := n.t
	t.delete(n.s, n.second, n.heir)
	start := time.Now()
	n.heir = t.succeed(n.s, n.second, t.mortal("I am the heir"))
	t.fades(n.second, n.heir, start, nil)
	n.gone()
}

func whatTheSafeDoesNotHoldIsNotVacated(n *pair) {
	t := n.t
	t.delete(n.s, n.second, n.heir)
	token, signature := n.leader, n.leader
	token.Token++
	signature.Signature = t.signed("").Signature
	for _, other := range []kv.Record{token, signature} {
		_, err := n.vacate(other)
		require.ErrorIs(t, err, kv.ErrStale)
		n.leaderGoesOn()
	}
	n.gone()
	_, err := n.vacate(n.leader)
	require.ErrorIs(t, err, kv.ErrStale)
	t.vacant(n.lead)
}

// Somebody becomes heir, and looks then who has the leader's safe. If that is still the
// leader, it is not vacated any more.
func aSafeIsVacatedBeforeAnHeirComesOrNotAtAll(first *pair) {
	t := first.t
	for i := range 40 {
		n := t.pair(ample)
		t.delete(n.s, n.second, n.heir)
		ahead := time.Duration(i-20) * t.ttl / 5000
		came := make(chan error)
		var seen kv.Record
		go func() {
			time.Sleep(-ahead)
			_, err := n.s.Create(t.ctx, n.second, t.signed("I am the heir"))
			if err == nil {
				seen, err = n.s.Get(t.ctx, n.lead)
			}
			came <- err
		}()
		time.Sleep(ahead)
		_, err := n.vacate(n.leader)
		looked := <-came
		if err != nil {
			require.ErrorIs(t, err, kv.ErrHeld)
			require.NoError(t, looked)
			n.leaderGoesOn()
			t.delete(t.s, n.lead, n.leader)
			continue
		}
		require.ErrorIs(t, looked, kv.ErrVacant, "the heir saw %s, and after that the safe was vacated", describe(seen))
		t.vacant(n.lead)
	}
}

func aVacateWhoseContextHasEndedReturns(n *pair) {
	t := n.t
	t.delete(n.s, n.second, n.heir)
	ctx, cancel := context.WithCancel(t.ctx)
	cancel()
	start := time.Now()
	_, err := n.t.s.(kv.Vacate).Vacate(ctx, n.lead, n.leader, n.second) //nolint:forcetypeassert // else it were skipped
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, kv.ErrStale)
	require.NotErrorIs(t, err, kv.ErrHeld)
	require.Less(t, time.Since(start), promptly)
}
