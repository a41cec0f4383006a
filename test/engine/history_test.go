package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvfault"
)

// told returns an election's history, one word for each term.
func told(t *testing.T, store kv.Store, name string) string {
	t.Helper()
	terms, err := election.History(t.Context(), store, name)
	require.NoError(t, err)
	var words []string
	for i, term := range terms {
		word := fmt.Sprintf("%s:%s", term.ID, term.Reason)
		if term.HandedOver {
			word += "+"
		}
		words = append(words, word)
		if i+1 < len(terms) {
			require.Less(t, term.Token, terms[i+1].Token)
			require.False(t, term.Ended.Before(term.Began))
			require.False(t, terms[i+1].Began.Before(term.Ended))
		} else {
			require.Zero(t, term.Ended)
		}
	}
	return strings.Join(words, " ")
}

func TestAnElectionRemembersItsTerms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, store := newBallot(t), memkv.New()
		_, err := election.History(t.Context(), store, b.name)
		require.ErrorIs(t, err, election.ErrNoLeader)

		stopA := b.run(b.candidate(store, "a", firstCome), "a")
		time.Sleep(ttl)
		require.Equal(t, "a:", told(t, store, b.name))

		cut := kvfault.Wrap(store)
		stopB := b.run(b.candidate(cut.Store, "b", firstCome), "b")
		time.Sleep(ttl)
		began := time.Now()
		require.Error(t, stopA()) // hands over to b
		time.Sleep(ttl)
		require.Equal(t, "a:stopped+ b:", told(t, store, b.name))
		terms, err := election.History(t.Context(), store, b.name)
		require.NoError(t, err)
		require.Equal(t, b.all()[0].Token(), terms[0].Token)
		require.WithinDuration(t, began, terms[0].Ended, time.Second)

		c := b.candidate(store, "c", firstCome)
		b.run(c, "c")
		time.Sleep(ttl)
		cut.On().DropRequests() // b is lost, as if it had died
		time.Sleep(3 * ttl)
		require.Equal(t, "a:stopped+ b:gone c:", told(t, store, b.name))
		cut.Heal()
		time.Sleep(3 * ttl)

		require.NoError(t, election.RequestTransfer(t.Context(), store, b.name, "b"))
		time.Sleep(ttl)
		require.Equal(t, "a:stopped+ b:gone c:asked+ b:", told(t, store, b.name), "what b knew of its own end is not in c's record")
		require.Error(t, stopB())
		time.Sleep(ttl)
		require.Equal(t, "a:stopped+ b:expired c:asked+ b:stopped+ c:", told(t, store, b.name), "why the first term of b had ended, b knew itself")
	})
}

func TestACandidateThatLeadsAgainAndAgainRemembersThat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, store := newBallot(t), memkv.New()
		a := b.candidate(store, "a")
		for range 100 {
			require.NoError(t, a.Run(t.Context(), func(_ context.Context, term *election.Term) error {
				time.Sleep(time.Second)
				require.LessOrEqual(t, len(term.Record().Note), 2<<10)
				return nil
			}))
		}
		stop := b.run(a, "a")
		time.Sleep(time.Second)
		require.Equal(t, strings.Repeat("a:finished ", 64)+"a:", told(t, store, b.name))
		require.Error(t, stop())
	})
}

func TestThereIsNoHistoryWithoutHeirs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, store := newBallot(t), memkv.New()
		a := b.candidate(store, "a", func(o *election.Options) { o.NoHeir = true })
		for range 3 {
			term, err := a.Campaign(t.Context())
			require.NoError(t, err)
			require.Equal(t, "a:", told(t, store, b.name))
			require.NoError(t, term.Resign(t.Context()))
		}
		store.Put(b.name, "mine")
		terms, err := election.History(t.Context(), store, b.name)
		require.NoError(t, err)
		require.Empty(t, terms, "of another program's lock")
	})
}
