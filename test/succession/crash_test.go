//go:build unix

package succession_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/kv"
)

// short is a TTL of leaders that will be missed.
const short = 4 * time.Second

// life returns how long the store keeps the records of leaders that are gone, at
// most.
func life(t testing.TB, store kv.Store, ttl time.Duration) time.Duration {
	t.Helper()
	l, err := store.Lifetime(ttl)
	require.NoError(t, err)
	return l.Max
}

// hesitation is how long candidates wait before they claim either safe, at most:
// twice over the spread of claims, of 250 ms or less, and twice that as a fresh
// heir.
const hesitation = 4 * 250 * time.Millisecond

// Who is cut off, paused or gone takes nobody with it.
func TestTheLineHoldsWhoeverFails(t *testing.T) {
	t.Parallel()
	const ttl = 3 * short // a busy machine takes nobody's term
	each(t, func(t *testing.T, k kind) {
		f := newFleet(t, k.setUp(t))
		options := election.Options{TTL: ttl, Succession: election.FirstCome}
		bound := life(t, f.eye, ttl) + hesitation + 2*slack
		f.enter("ann", options)
		leader, term := f.leads(0, patience)
		for _, id := range []string{"bob", "cid", "dan", "eve"} {
			f.enter(id, options)
		}

		t.Log("the leader is cut off: the heir follows")
		heir := f.isHeir(patience)
		gone := leader
		gone.link.cut()
		leader, term = f.leads(term.Token(), bound)
		require.Equal(t, heir.id, leader.id)
		gone.link.heal()

		t.Log("leader and heir are cut off: one of the others follows")
		heir = f.isHeir(bound)
		lost := []*member{leader, heir}
		for _, m := range lost {
			m.link.hush()
		}
		leader, term = f.leads(term.Token(), bound)
		require.NotContains(t, []string{lost[0].id, lost[1].id}, leader.id)
		for _, m := range lost {
			m.link.heal()
		}

		t.Log("the heir is cut off: another becomes heir, and the leader leads on")
		heir = f.isHeir(bound)
		heir.link.hush()
		others := []*member{}
		for _, m := range f.present() {
			if m != leader && m != heir {
				others = append(others, m)
			}
		}
		next := f.isHeir(bound, others...)
		require.NoError(t, term.Err(), "the leader needs no heir")

		t.Log("the next heir is cut off, and the leader, who cannot know it, resigns")
		next.link.hush()
		before := term.Token()
		require.NoError(t, term.Resign(t.Context()))
		leader, term = f.leads(before, 2*bound)
		require.NotContains(t, []string{heir.id, next.id}, leader.id)

		t.Log("all are back: somebody leads, and somebody is next")
		heir.link.heal()
		next.link.heal()
		heir = f.isHeir(bound)
		require.NoError(t, term.Resign(t.Context()))
		leader, _ = f.leads(term.Token(), patience)
		require.Equal(t, heir.id, leader.id)
		f.judge(ttl)
	})
}
