//go:build unix

package succession_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/internal/history"
)

// calm is a TTL that nothing expires by while leaders hand over.
const calm = 15 * time.Second

// oneWrite requires that since a page of the book each term came out of a single
// write to the leaders' safe, which put the next leader's record in the place of
// the one before it.
func (f *fleet) oneWrite(page, handOvers int) {
	f.t.Helper()
	var writes []entry
	require.Eventually(f.t, func() bool { // the heir may know before the leader has the answer
		writes = f.book.since(page, func(e entry) bool {
			refused := e.result == history.Held || e.result == history.Unsupported
			return e.safe == leaders && (e.op == create || e.op == swap || e.op == remove) && !refused
		})
		return !slices.ContainsFunc(writes, func(e entry) bool { return e.result == "" })
	}, patience, 10*time.Millisecond)
	require.Len(f.t, writes, handOvers, "writes to the leaders' safe: %v", writes)
	for _, w := range writes {
		require.Equal(f.t, swap, w.op)
		require.Equal(f.t, history.OK, w.result)
	}
}

func TestAHandOverIsOneWriteAndTheSafeIsNeverVacant(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, k kind) {
		f := newFleet(t, k.setUp(t))
		options := election.Options{TTL: calm, Succession: election.FirstCome}
		members := map[string]*member{"ann": f.enter("ann", options)}
		leader, term := f.leads(0, patience)
		for _, id := range []string{"bob", "cid", "dan"} {
			members[id] = f.enter(id, options)
		}
		sights, page, handOvers := f.lookOut(), f.book.page(), 0
		to := func(how string, next *member) {
			t.Helper()
			var now *member
			now, term = f.leads(term.Token(), patience)
			require.Equal(t, next.id, now.id, "who leads after %s", how)
			leader = now
			handOvers++
		}
		neither := func(heir *member) *member {
			for _, m := range f.present() {
				if m != leader && m != heir {
					return m
				}
			}
			panic("there are four")
		}

		heir := f.isHeir(patience)
		require.NoError(t, term.Resign(t.Context()))
		to("a resignation", heir)

		heir = f.isHeir(patience)
		f.leave(leader)
		gone := leader
		to("the end of Run", heir)
		members[gone.id] = f.enter(gone.id, options)

		heir = f.isHeir(patience)
		require.NoError(t, term.Transfer(t.Context(), heir.id))
		to("a transfer to the heir", heir)

		other := neither(f.isHeir(patience))
		require.NoError(t, term.Transfer(t.Context(), other.id))
		to("a transfer to another", other)

		heir = f.isHeir(patience)
		require.NoError(t, term.Resign(t.Context()))
		to("another resignation", heir)

		_, tokens := f.terms()
		sights.neverVacant(t, tokens)
		f.oneWrite(page, handOvers)
		f.judge(calm)
	})
}

// A leader that yields to a higher rank, in one write as well.
func TestALeaderThatYieldsLeavesNoVacancy(t *testing.T) {
	const stability = time.Second
	t.Parallel()
	each(t, func(t *testing.T, k kind) {
		f := newFleet(t, k.setUp(t))
		of := func(rank int) election.Options {
			return election.Options{TTL: calm, Succession: election.ByRank, Rank: rank, Stability: stability}
		}
		f.enter("low", of(1))
		_, term := f.leads(0, patience)
		sights, page := f.lookOut(), f.book.page()
		f.enter("middle", of(2))
		high := f.enter("high", of(3))
		for {
			leader, next := f.leads(term.Token(), patience)
			term = next
			if leader == high {
				break
			}
		}
		who, tokens := f.terms()
		require.GreaterOrEqual(t, f.stood(who[1]), stability, "for how long %s was heir before the leader gave way", who[1])
		require.LessOrEqual(t, len(who), 3, "no more changes than members joined: %v", who)
		sights.neverVacant(t, tokens)
		f.oneWrite(page, len(tokens)-1)
		f.judge(calm)
	})
}

// stood returns the time from when a member first asked to be heir, and became it,
// until the end of the first term.
func (f *fleet) stood(id string) time.Duration {
	f.t.Helper()
	asked := f.book.since(0, func(e entry) bool {
		return e.who == id && e.safe == heirs && (e.op == create || e.op == swap) && e.result == history.OK
	})
	require.NotEmpty(f.t, asked)
	return f.history().Stretches()[0].End - asked[0].at
}

// MaxTerm has the leadership travel round the ring of all, one write each.
func TestLeadershipGoesRoundTheRingWithoutAVacancy(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, k kind) {
		f := newFleet(t, k.setUp(t))
		options := election.Options{TTL: calm, Succession: election.Ring, MaxTerm: calm}
		f.enter("ann", options)
		_, term := f.leads(0, patience)
		sights, page := f.lookOut(), f.book.page()
		for _, id := range []string{"cid", "bob"} {
			f.enter(id, options)
		}
		want := []string{"ann", "bob", "cid", "ann", "bob"}
		for range want[1:] {
			_, term = f.leads(term.Token(), patience)
		}
		who, tokens := f.terms()
		require.Equal(t, want, who[:len(want)])
		sights.neverVacant(t, tokens)
		f.oneWrite(page, len(tokens)-1)
		f.judge(calm)
	})
}

// A leader's list decides who is next, and may change.
func TestTheLeadersListDecidesWhoIsNext(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, k kind) {
		f := newFleet(t, k.setUp(t))
		options := election.Options{TTL: calm, Succession: election.ByList, Heirs: []string{"nobody", "cid"}}
		members := map[string]*member{"ann": f.enter("ann", options)}
		_, term := f.leads(0, patience)
		for _, id := range []string{"bob", "cid", "dan"} {
			members[id] = f.enter(id, options)
		}
		sights, page := f.lookOut(), f.book.page()
		f.isHeir(patience, members["cid"])
		require.NoError(t, term.SetHeirs(t.Context(), "dan", "bob"))
		f.isHeir(patience, members["dan"])
		require.NoError(t, term.Resign(t.Context()))
		leader, term := f.leads(term.Token(), patience)
		require.Equal(t, "dan", leader.id)

		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		now, err := election.Current(ctx, f.eye, f.name)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint("dan ", term.Token()), fmt.Sprint(now.ID, " ", now.Token))

		_, tokens := f.terms()
		sights.neverVacant(t, tokens)
		f.oneWrite(page, len(tokens)-1)
		f.judge(calm)
	})
}
