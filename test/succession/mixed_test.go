//go:build unix

package succession_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
)

// Candidates with a succession and without one, in one election, as in a rollout:
// they keep the promises, whoever leads.
func TestCandidatesWithAndWithoutASuccessionExcludeEachOther(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, k kind) {
		f := newFleet(t, k.setUp(t))
		plain := election.Options{TTL: short, NoHeir: true}
		heeding := election.Options{TTL: short, Succession: election.FirstCome}
		bound := life(t, f.eye, short) + hesitation + slack

		old := []*member{f.enter("old 1", plain)}
		_, term := f.leads(0, patience)
		with := []*member{f.enter("new 1", heeding), f.enter("new 2", heeding), f.enter("new 3", heeding)}
		old = append(old, f.enter("old 2", plain))
		f.isHeir(patience)
		for round := range 4 {
			leader, now := f.leads(term.Token()-1, patience)
			if round%2 == 0 {
				require.NoError(t, now.Resign(t.Context()))
			} else {
				leader.link.cut()
			}
			_, term = f.leads(now.Token(), bound)
			leader.link.heal()
		}

		t.Log("the old ones leave: a new one leads")
		f.leave(old...)
		f.leadsOne(bound, with)
		t.Log("an old one comes, and the new ones leave: it leads")
		old = []*member{f.enter("old 3", plain)}
		f.leave(with...)
		f.leadsOne(bound, old)
		f.judge(short)
	})
}
