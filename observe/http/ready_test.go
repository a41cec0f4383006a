package electionhttp_test

import (
	"errors"
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

// A standby that waits hears nothing for as long as nothing changes.
func TestAStandbyThatHearsNothingAsksTheStoreSeldomAndIsReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memkv.New()
		newHost(t, store, "a", nil).run(0)
		b := newHost(t, store, "b", nil, func(o *election.Options) { o.NoHeir = true })
		b.run(0)
		time.Sleep(10 * ttl)
		require.Greater(t, time.Since(b.candidate.Status().Contact), ttl, "else this test shows nothing")
		const probes = 300
		for range probes {
			require.Equal(t, http.StatusOK, b.code("/readyz"))
			time.Sleep(ttl / 30)
		}
		asked := b.read.Calls(kvfault.Get)
		require.LessOrEqual(t, asked, probes/10+1, "once in a third of a TTL")
		require.GreaterOrEqual(t, asked, probes/30, "and it does ask")
	})
}

func TestALeaderIsReadyWithoutARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newHost(t, memkv.New(), "a", nil)
		a.run(0)
		for range 100 {
			require.Equal(t, http.StatusOK, a.code("/readyz"))
			require.Equal(t, http.StatusOK, a.code("/readyz?leader"))
			time.Sleep(ttl / 7)
		}
		require.Zero(t, a.read.Calls(kvfault.Get))
	})
}

func TestReadinessOfTheLeaderAloneIsForThoseWhoAskForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memkv.New()
		a, b := newHost(t, store, "a", nil), newHost(t, store, "b", nil)
		a.run(0)
		b.run(0)
		require.Equal(t, http.StatusOK, a.code("/readyz?leader"))
		require.Equal(t, http.StatusOK, b.code("/readyz"))
		require.Equal(t, http.StatusServiceUnavailable, b.code("/readyz?leader"))
		require.Equal(t, "heir", b.body("/readyz?leader")["role"])
	})
}

func TestAProcessIsReadyUntilItHasHeardNothingForATTLAndAgainWhenItHears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newHost(t, memkv.New(), "a", nil)
		stop := a.run(0)
		time.Sleep(time.Second)
		for _, s := range []*kvfault.Link{a.own, a.read} {
			s.On().Fail(errors.New("down"))
		}
		heard := a.candidate.Status().Contact
		for time.Since(heard) <= ttl {
			require.Equal(t, http.StatusOK, a.code("/readyz"), time.Since(heard))
			time.Sleep(ttl / 50)
		}
		require.Equal(t, http.StatusServiceUnavailable, a.code("/readyz"))
		require.Regexp(t, `^the store has not answered within 10s: .*down`, a.body("/readyz")["error"])
		a.read.Heal()
		time.Sleep(ttl / 3)
		require.Equal(t, http.StatusOK, a.code("/readyz"), "what the handler hears counts")
		a.own.Heal()
		stop()
	})
}

func TestRequestsShareOneReadOfAStoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newHost(t, memkv.New(), "a", nil)
		a.read.On(kvfault.Get).DropRequests()
		began := time.Now()
		var crowd sync.WaitGroup
		for range 50 {
			crowd.Go(func() {
				require.Equal(t, http.StatusServiceUnavailable, a.code("/readyz"))
				require.Equal(t, ttl/3, time.Since(began), "it waits for as long as a request may take")
			})
		}
		crowd.Wait()
		require.Equal(t, 1, a.read.Calls(kvfault.Get))
		a.read.On(kvfault.Get).Fail(errors.New("down"))
		for range 50 {
			require.Contains(t, a.body("/readyz")["error"], "down")
		}
		require.Equal(t, 2, a.read.Calls(kvfault.Get), "once in a third of a TTL")
		a.read.Heal()
		time.Sleep(ttl / 3)
		require.Equal(t, http.StatusOK, a.code("/readyz"))
	})
}
