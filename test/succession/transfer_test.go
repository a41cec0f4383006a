//go:build unix

package succession_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
)

func TestATransferToNobodyLeavesTheLeaderAndAnHeir(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, k kind) {
		f := newFleet(t, k.setUp(t))
		options := election.Options{TTL: calm, Succession: election.FirstCome}
		f.enter("ann", options)
		leader, term := f.leads(0, patience)
		f.enter("bob", options)
		f.enter("cid", options)
		f.isHeir(patience)
		sights, page := f.lookOut(), f.book.page()

		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		began := time.Now()
		require.ErrorIs(t, term.Transfer(ctx, "nobody"), election.ErrNoHeir)
		require.Less(t, time.Since(began), 2*time.Second+slack)
		require.NoError(t, term.Err(), "the term goes on")

		t.Log("the call is taken back: there is an heir again before it would have faded")
		heir := f.isHeir(hesitation + slack)
		now, err := election.CurrentHeir(t.Context(), f.eye, f.name)
		require.NoError(t, err)
		require.Equal(t, heir.id, now.ID)
		require.NoError(t, term.Err())

		t.Log("and succession works as before")
		require.NoError(t, term.Resign(t.Context()))
		next, _ := f.leads(term.Token(), patience)
		require.Equal(t, heir.id, next.id)
		require.NotEqual(t, leader.id, next.id)
		_, tokens := f.terms()
		sights.neverVacant(t, tokens)
		f.oneWrite(page, 1)
		f.judge(calm)
	})
}
