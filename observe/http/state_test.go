package electionhttp_test

import (
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv/kvfault"
)

func TestTheNameIsThatOfTheLeaderOfThisMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memkv.New()
		a, b := newHost(t, store, "a", nil), newHost(t, store, "b", nil)
		name := func(h *host) any { return h.body("/")["name"] }
		require.Empty(t, name(a), "nobody leads")
		stop := a.run(0)
		b.run(0)
		time.Sleep(time.Second)
		require.Equal(t, "a", name(a))
		require.Equal(t, "a", name(b))
		require.Equal(t, 1, a.read.Calls(kvfault.Get), "a leader knows it by its clock")
		stop()
		synctest.Wait()
		require.Equal(t, "b", name(a))
		require.Equal(t, "b", name(b))
		require.Equal(t, "b\n", ask(a, http.MethodGet, "/", "Accept", "text/plain").Body.String())
		store.Put("billing", "theirs")
		time.Sleep(time.Second)
		require.Empty(t, name(a), "another program's lock has no ID")
	})
}

func TestALeaderWhoseTrustIsOverDoesNotNameItselfThoughItsRecordIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memkv.New()
		a, b := newHost(t, store, "a", nil), newHost(t, store, "b", nil)
		a.run(ttl)
		a.own.On(kvfault.Refresh).DropRequests()
		time.Sleep(trust)
		require.Equal(t, "a", b.body("/")["name"], "else this test shows nothing")
		require.Empty(t, a.body("/")["name"])
		a.own.Heal()
	})
}

func TestWhereTheStoreDoesNotAnswerThereIsNoName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memkv.New()
		newHost(t, store, "a", nil).run(0)
		b := newHost(t, store, "b", nil)
		require.Equal(t, "a", b.body("/")["name"])
		b.read.On().Fail(errors.New("down"))
		w := ask(b, http.MethodGet, "/")
		require.Equal(t, http.StatusServiceUnavailable, w.Code)
		require.NotContains(t, w.Body.String(), `"a"`, "no answer is kept")
		require.Contains(t, w.Body.String(), "down")
	})
}

func TestRequestsAtTheSameTimeShareAReadThatBeginsAfterTheyCame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memkv.New()
		a, b := newHost(t, store, "a", nil), newHost(t, store, "b", nil)
		stop := a.run(0)
		b.read.On(kvfault.Get).DelayReplies(time.Second) // it is answered at once, and the answer is on its way
		var crowd sync.WaitGroup
		crowd.Go(func() { require.Equal(t, "a", b.body("/")["name"]) })
		synctest.Wait()
		stop()
		for range 20 {
			crowd.Go(func() { require.Empty(t, b.body("/")["name"], "that a led is no answer any more") })
		}
		crowd.Wait()
		require.Equal(t, 2, b.read.Calls(kvfault.Get))
	})
}

func TestStatusIsThatOfTheCommandAndSelf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memkv.New()
		ranked := func(rank int) func(*election.Options) {
			return func(o *election.Options) { o.Succession, o.Rank, o.Value = election.ByRank, rank, "<at> "+o.ID }
		}
		a, b := newHost(t, store, "a", nil, ranked(9)), newHost(t, store, "b", nil, ranked(3))
		a.run(0)
		time.Sleep(time.Second)
		b.run(0)
		time.Sleep(time.Second)
		w := ask(b, http.MethodGet, "/status")
		require.Equal(t, http.StatusOK, w.Code)
		moment := func(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }
		leader, err := election.Current(t.Context(), store, "billing")
		require.NoError(t, err)
		heir, err := election.CurrentHeir(t.Context(), store, "billing")
		require.NoError(t, err)
		require.JSONEq(t, fmt.Sprintf(`{
			"time": %q, "name": "billing", "id": "a", "value": "<at> a", "token": %d, "state": "leader",
			"since": %q, "rank": 9,
			"heir": {"id": "b", "value": "<at> b", "rank": 3, "since": %q},
			"self": {"id": "b", "role": "heir", "token": 0, "remaining": 0, "contact": %q}
		}`, moment(time.Now()), leader.Token, moment(leader.Since), moment(heir.Since), moment(b.candidate.Status().Contact)), w.Body.String())
		require.Contains(t, w.Body.String(), "<at>", "as the command writes it")
		self := a.body("/status")["self"].(map[string]any)
		require.Equal(t, "leader", self["role"])
		require.InDelta(t, leader.Token, self["token"], 0)
		require.Positive(t, self["remaining"])
	})
}

func TestStatusSaysWhatItCannotTellAndWhatThisProcessIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memkv.New()
		a := newHost(t, store, "a", nil)
		a.run(0)
		a.read.On(kvfault.Get).Fail(errors.New("down"))
		w := ask(a, http.MethodGet, "/status")
		require.Equal(t, http.StatusServiceUnavailable, w.Code)
		require.Contains(t, w.Body.String(), `"error":"cannot tell who leads: `)
		require.Contains(t, w.Body.String(), `"role":"leader"`)
		a.read.Heal()
		require.Equal(t, http.StatusOK, a.code("/status"))
		require.NotContains(t, a.body("/status"), "trouble")
		store.Put("billing:heir", "theirs")
		trouble := a.body("/status")["trouble"].([]any)
		require.Len(t, trouble, 1)
		require.Contains(t, trouble[0], "cannot tell who is heir: ")
	})
}

func TestAfterCloseAProcessStillKnowsWhatItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memkv.New()
		a, b := newHost(t, store, "a", nil), newHost(t, store, "b", nil)
		a.run(0)
		a.Close()
		b.Close()
		require.Equal(t, http.StatusOK, a.code("/leader"))
		require.Equal(t, http.StatusOK, a.code("/livez"))
		require.Equal(t, http.StatusServiceUnavailable, b.code("/leader"))
		for _, path := range []string{"/", "/status", "/readyz", "/events"} {
			require.Equal(t, http.StatusServiceUnavailable, b.code(path), path)
		}
		require.Zero(t, b.read.Calls(kvfault.Get))
	})
}

func TestTheHistoryIsThatOfTheElection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memkv.New()
		a, b := newHost(t, store, "a", nil), newHost(t, store, "b", nil)
		require.Empty(t, a.body("/history")["terms"], "nobody leads")
		stop := a.run(0)
		time.Sleep(time.Second)
		b.run(0)
		time.Sleep(time.Second)
		stop()
		synctest.Wait()
		terms, ok := b.body("/history")["terms"].([]any)
		require.True(t, ok)
		require.Len(t, terms, 2)
		require.Subset(t, terms[0], map[string]any{"name": "billing", "id": "a", "reason": "stopped", "handed_over": true})
		require.Subset(t, terms[1], map[string]any{"id": "b", "handed_over": false})
		require.NotContains(t, terms[1], "ended")
		b.read.On(kvfault.Get).Fail(errors.New("down"))
		require.Equal(t, http.StatusServiceUnavailable, ask(b, http.MethodGet, "/history").Code)
		b.read.Heal()
	})
}
