package electionhttp_test

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv/kvfault"
)

func TestEachRoleHasAPathThatSaysWhetherItIsTheCandidates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memkv.New()
		idle := newHost(t, store, "idle", nil)
		leader := newHost(t, store, "leader", nil)
		leader.run(0)
		time.Sleep(time.Second)
		heir := newHost(t, store, "heir", nil)
		heir.run(0)
		time.Sleep(time.Second)
		third := newHost(t, store, "third", nil)
		third.run(0)
		time.Sleep(time.Second + 500*time.Millisecond) // no refresh is due at this moment
		for _, c := range []struct {
			of   *host
			want map[string]int
		}{
			{idle, map[string]int{"/leader": 503, "/heir": 503, "/standby": 503, "/livez": 200}},
			{leader, map[string]int{"/leader": 200, "/heir": 503, "/standby": 503, "/livez": 200}},
			{heir, map[string]int{"/leader": 503, "/heir": 200, "/standby": 200, "/livez": 200}},
			{third, map[string]int{"/leader": 503, "/heir": 503, "/standby": 200, "/livez": 200}},
		} {
			for path, want := range c.want {
				for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodOptions} {
					require.Equal(t, want, ask(c.of, method, path).Code, "%s %s of %s", method, path, c.of.candidate.ID())
				}
			}
		}
		require.Equal(t, "candidate", third.body("/leader")["role"])
		got := leader.body("/leader")
		require.Equal(t, "leader", got["role"])
		require.Equal(t, "leader", got["id"])
		require.Len(t, got, 4)
		require.InDelta(t, leader.candidate.Status().Token, got["token"], 0)
		require.InDelta(t, leader.candidate.Status().Remaining.Seconds(), got["remaining"], 0.01)
		require.LessOrEqual(t, got["remaining"], leader.candidate.Status().Remaining.Seconds()+0.0001, "not more than there is")
		require.Regexp(t, `^leader: leader, token \d+, trusted for [\d.]+s\n$`, ask(leader, http.MethodGet, "/leader", "Accept", "text/plain").Body.String())
		require.Equal(t, "heir: heir\n", ask(heir, http.MethodGet, "/leader", "Accept", "text/plain").Body.String())
		require.Zero(t, leader.read.Calls(kvfault.Get), "what a process is costs no request")
	})
}

// trust is for how long a lease is trusted: the TTL but for the margin.
const trust = ttl * 9 / 10

func TestLeaderIsNotAnsweredPastTrust(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, memkv.New(), "a", nil)
		h.run(0)
		h.own.On(kvfault.Refresh).DropRequests()
		time.Sleep(trust - time.Nanosecond)
		w := ask(h, http.MethodGet, "/leader")
		require.Equal(t, http.StatusOK, w.Code)
		require.Contains(t, w.Body.String(), `"remaining":0}`, "rounded down")
		time.Sleep(time.Nanosecond)
		require.Equal(t, http.StatusServiceUnavailable, h.code("/leader"), "at that moment, whatever the timers do")
		require.Contains(t, ask(h, http.MethodGet, "/leader").Body.String(), `"token":0,"remaining":0`)
		h.own.Heal()
	})
}

func TestAProcessIsAliveUnlessItsWorkGoesOnWhileAnotherMayLead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, memkv.New(), "a", nil)
		h.run(2 * ttl)
		h.own.On(kvfault.Refresh).Fail(errors.New("cut off"))
		h.own.On(kvfault.Watch).Fail(errors.New("cut off"))
		time.Sleep(trust)
		require.Equal(t, election.RoleIdle, h.candidate.Status().Role)
		require.Equal(t, http.StatusOK, h.code("/livez"), "the work may be about to stop")
		time.Sleep(ttl/10 + time.Second)
		w := ask(h, http.MethodGet, "/livez")
		require.Equal(t, http.StatusServiceUnavailable, w.Code)
		require.Regexp(t, `"overdue":(0.9|1)`, w.Body.String())
		require.Contains(t, ask(h, http.MethodGet, "/livez", "Accept", "text/plain").Body.String(), "work overdue for ")
		time.Sleep(ttl * 9 / 10)
		h.own.Heal()
		time.Sleep(ttl)
		require.Equal(t, http.StatusOK, h.code("/livez"), "the work has stopped")
	})
}

func TestAProcessWhoseStoreIsDownIsAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, memkv.New(), "a", nil)
		for _, s := range []*kvfault.Link{h.own, h.read} {
			s.On().Fail(errors.New("down"))
		}
		stop := h.run(0)
		time.Sleep(10 * ttl)
		require.Equal(t, http.StatusOK, h.code("/livez"))
		require.Equal(t, http.StatusServiceUnavailable, h.code("/readyz"))
		h.own.Heal()
		stop()
	})
}
