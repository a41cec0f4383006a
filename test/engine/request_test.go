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

// ask puts a request where a leader looks, as another program would.
func (b *ballot) ask(store kv.Store, token uint64, to string) kv.Record {
	b.t.Helper()
	text := fmt.Sprintf(`{"token":%d,"to":%q}`, token, to)
	rec, err := store.Create(b.t.Context(), b.name+":request", kv.Record{Signature: "request/1", Value: text, TTL: time.Minute})
	require.NoError(b.t, err)
	return rec
}

func TestARequestThatWasMadeOfAnEarlierTermIsNotHeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		p.ask(p.store, p.leader.Token()-1, "")
		time.Sleep(ttl)
		require.NoError(t, p.leader.Err())
		rec, err := p.store.Get(t.Context(), p.name+":request")
		require.NoError(t, err)
		require.NotContains(t, rec.Value, "answer")
	})
}

// The leader is told late that its heir has answered, and not at all that nobody asks
// for it any more.
func TestWhoWasCalledForARequestThatIsGoneIsNotPreferred(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		faults := twice(store)
		b.succession(faults.Store, store)
		faults.heirs.On(kvfault.Watch).DelayReplies(ttl / 5)
		rec := b.ask(store, b.last().Token(), "b")
		time.Sleep(ttl / 10)
		faults.On(kvfault.Watch).DropRequests()
		there, err := store.Get(t.Context(), b.name+":request")
		require.NoError(t, err)
		require.True(t, there.Owns(rec))
		require.Contains(t, there.Value, "heard")
		require.NoError(t, store.Delete(t.Context(), b.name+":request", there))
		time.Sleep(ttl)
		require.NoError(t, b.last().Err())
		heir, err := store.Get(t.Context(), b.name+":heir")
		require.NoError(t, err)
		require.NotContains(t, heir.Note, `"called"`, "b is heir like anybody")
		faults.Heal()
	})
}

func TestALeaderThatIsNotToldThatItHasAnsweredComplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		faults := kvfault.Wrap(store)
		b.run(b.candidate(faults.Store, "a", firstCome), "a")
		time.Sleep(ttl)
		faults.On(kvfault.Swap).Next(1).FailReplies(errStore)
		began := time.Now()
		require.NoError(t, election.RequestResign(t.Context(), store, b.name))
		require.Less(t, time.Since(began), ttl/3)
	})
}

// The asker does not know whether its request was made, and finds another's.
func TestAnAskerTakesNobodyElsesRequestBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t)
		rec := p.ask(p.store, 0, "")
		asker := kvfault.Wrap(p.store)
		asker.On(kvfault.Create).Fail(errStore)
		require.ErrorContains(t, election.RequestResign(t.Context(), asker.Store, p.name), "cannot tell whether the request was made")
		there, err := p.store.Get(t.Context(), p.name+":request")
		require.NoError(t, err)
		require.Equal(t, rec, there)
		require.NoError(t, p.leader.Err())
	})
}

// An empty safe is what a transfer may come to in between, and no end of it.
func TestATransferThatWasAskedForIsDoneWhenTheRightOneLeads(t *testing.T) {
	for name, c := range map[string]struct {
		next func(b *ballot, store *memkv.Store)
		says string
	}{
		"the right one": {func(b *ballot, store *memkv.Store) { b.occupy(store, "b/1") }, ""},
		"another":       {func(b *ballot, store *memkv.Store) { b.occupy(store, "c/1") }, `"c" leads now`},
		"a lock":        {func(b *ballot, store *memkv.Store) { store.Put(b.name, "b/1") }, "a lock that this library did not write"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, b := memkv.New(), newBallot(t)
				term, err := b.candidate(store, "a").Campaign(t.Context())
				require.NoError(t, err)
				asked := make(chan error, 1)
				go func() { asked <- election.RequestTransfer(t.Context(), store, b.name, "b") }()
				time.Sleep(time.Second)
				require.NoError(t, term.Resign(t.Context()))
				time.Sleep(time.Second)
				require.Empty(t, asked, "nobody leads yet")
				c.next(b, store)
				if err := <-asked; c.says == "" {
					require.NoError(t, err)
				} else {
					require.ErrorContains(t, err, c.says)
				}
			})
		})
	}
}

// The leader has agreed, the candidate that was called vanishes, and there is no other.
func TestATransferThatNobodyFollowsComesToAnEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		rec, err := store.Create(t.Context(), b.name, kv.Record{Signature: "a/1", TTL: ttl})
		require.NoError(t, err)
		asked, began := make(chan error, 1), time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 10*ttl)
		defer cancel()
		go func() { asked <- election.RequestTransfer(ctx, store, b.name, "b") }()
		time.Sleep(time.Second)
		request, err := store.Get(t.Context(), b.name+":request")
		require.NoError(t, err)
		agreed := request
		agreed.Value = strings.Replace(request.Value, "}", `,"answer":"accepted"}`, 1)
		_, err = store.Swap(t.Context(), b.name+":request", request, agreed)
		require.NoError(t, err)
		require.NoError(t, store.Delete(t.Context(), b.name, rec))
		err = <-asked
		require.ErrorIs(t, err, election.ErrNoLeader)
		require.ErrorContains(t, err, "nobody has followed")
		require.LessOrEqual(t, time.Since(began), 3*ttl)
	})
}

func TestALeaderThatWasAskedToHasResignedWhenTheSafeIsEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, b := memkv.New(), newBallot(t)
		term, err := b.candidate(store, "a").Campaign(t.Context())
		require.NoError(t, err)
		time.AfterFunc(time.Second, func() { _ = term.Resign(t.Context()) })
		began := time.Now()
		require.NoError(t, election.RequestResign(t.Context(), store, b.name))
		require.Equal(t, time.Second, time.Since(began))
	})
}

// occupy puts somebody else's record into the vacant safe.
func (b *ballot) occupy(store kv.Store, signature string) {
	b.t.Helper()
	_, err := store.Create(b.t.Context(), b.name, kv.Record{Signature: signature, TTL: time.Hour})
	require.NoError(b.t, err)
}
