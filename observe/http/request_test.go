package electionhttp_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv/kvfault"
	"github.com/electkv/election/observe/http"
)

// withToken lets requests through that bear it.
func withToken() *electionhttp.Options { return &electionhttp.Options{Token: "xyzzy"} }

// post makes a request that bears the token.
func (h *host) post(target string) (code int, body string) {
	w := ask(h, http.MethodPost, target, "Authorization", "Bearer xyzzy")
	return w.Code, w.Body.String()
}

// leaderAndHeir returns two hosts on a store, of which the second is the heir of the first. The
// first one's work goes on for a while after it was told to stop.
func leaderAndHeir(t *testing.T, goesOn time.Duration) (a, b *host) {
	t.Helper()
	store := memkv.New()
	a, b = newHost(t, store, "a", withToken()), newHost(t, store, "b", withToken())
	a.run(goesOn)
	time.Sleep(time.Second)
	b.run(0)
	time.Sleep(time.Second)
	return a, b
}

func TestResignIsAnsweredWhenTheWorkHasStoppedAndAnotherLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := leaderAndHeir(t, 3*time.Second)
		began := time.Now()
		code, body := a.post("/resign")
		require.Equal(t, http.StatusOK, code, body)
		require.JSONEq(t, `{"name":"b"}`, body)
		require.GreaterOrEqual(t, time.Since(began), 3*time.Second)
		require.Equal(t, http.StatusServiceUnavailable, a.code("/leader"))
		synctest.Wait()
		require.Equal(t, http.StatusOK, b.code("/leader"))
	})
}

// A hook that runs before each process stops must not depose another.
func TestResignIsForTheProcessThatIsAskedUnlessAnyMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := leaderAndHeir(t, 0)
		code, body := b.post("/resign")
		require.Equal(t, http.StatusConflict, code)
		require.Contains(t, body, "add ?any")
		require.Equal(t, election.RoleLeader, a.candidate.Status().Role)
		code, body = b.post("/resign?any")
		require.Equal(t, http.StatusOK, code, body)
		time.Sleep(time.Second)
		require.Equal(t, election.RoleLeader, b.candidate.Status().Role)
	})
}

func TestTransferIsForTheLeaderWhicheverProcessIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memkv.New()
		a, b, c := newHost(t, store, "a", withToken()), newHost(t, store, "b", withToken()), newHost(t, store, "c", withToken())
		for _, h := range []*host{a, b, c} {
			h.run(0)
			time.Sleep(time.Second)
		}
		code, body := b.post("/transfer?to=c")
		require.Equal(t, http.StatusOK, code, body)
		require.JSONEq(t, `{"name":"c"}`, body)
		time.Sleep(time.Second)
		require.Equal(t, election.RoleLeader, c.candidate.Status().Role)
		code, body = b.post("/transfer?to=c")
		require.Equal(t, http.StatusOK, code, "it leads already")
		require.JSONEq(t, `{"name":"c"}`, body)
		code, body = a.post("/transfer?to=nobody")
		require.Equal(t, http.StatusConflict, code)
		require.Contains(t, body, `{"error":"`)
		require.Equal(t, election.RoleLeader, c.candidate.Status().Role)
	})
}

func TestARequestThatTheStoreDoesNotTakeIsNotSaidToBeDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newHost(t, memkv.New(), "a", withToken())
		a.run(0)
		a.read.On(kvfault.Create).FailReplies(http.ErrHandlerTimeout)
		a.read.On(kvfault.Get).Next(2).Fail(http.ErrHandlerTimeout)
		code, body := a.post("/resign")
		require.Equal(t, http.StatusServiceUnavailable, code, body)
		require.Contains(t, body, `{"error":"`)
	})
}

// The term ends while the store is asked who leads, and then another leads.
func TestResignIsForTheTermInWhichItWasAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := leaderAndHeir(t, 0)
		a.own.On().DropRequests()
		a.read.On(kvfault.Get).DelayRequests(3 * ttl)
		code, body := a.post("/resign")
		require.Equal(t, http.StatusConflict, code, body)
		require.Contains(t, body, "add ?any")
		require.Equal(t, election.RoleLeader, b.candidate.Status().Role)
		a.own.Heal()
	})
}

func TestCloseEndsRequestsToTheLeaderAndWaitsForThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, b := leaderAndHeir(t, time.Hour)
		answered := make(chan int, 1)
		go func() {
			code, _ := b.post("/transfer?to=b")
			answered <- code
		}()
		time.Sleep(time.Second)
		b.read.On(kvfault.Delete).DelayRequests(time.Second) // of the request
		began := time.Now()
		b.Close()
		require.Equal(t, time.Second, time.Since(began))
		synctest.Wait()
		require.Len(t, answered, 1)
		require.Equal(t, http.StatusServiceUnavailable, <-answered)
		code, body := b.post("/transfer?to=b")
		require.Equal(t, http.StatusServiceUnavailable, code, body)
	})
}
