package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/internal/observer"
	"github.com/electkv/election/internal/observer/memregister"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvfault"
)

// The engine where observers judge which records have expired. Each process has a
// store of its own, which knows what that process has seen. The simulation has the
// rest.
func judge(reg *memregister.Register) kv.Store {
	return observer.New(reg, &observer.Options{Clock: memregister.Clock()})
}

func TestWhereObserversJudgeTheNextLeadsATTLAfterTheLastRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg, b := memregister.New(), newBallot(t)
		net := kvfault.Wrap(judge(reg))
		b.run(b.candidate(net.Store, "a"), "a")
		time.Sleep(ttl)
		for _, id := range []string{"b", "c", "d"} {
			b.run(b.candidate(judge(reg), id), id)
		}
		time.Sleep(100 * ttl)
		require.Equal(t, "a", b.leaders(), "a leader that is well stays")
		net.On().DropRequests()
		time.Sleep(ttl / 2)
		require.Equal(t, "a", b.leaders())
		time.Sleep(ttl)
		require.Len(t, b.leaders(), len("a b"), "one of those who watched")
	})
}

func TestWhereObserversJudgeWhoComesAnewWaitsForATTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg, b := memregister.New(), newBallot(t)
		net := kvfault.Wrap(judge(reg))
		b.run(b.candidate(net.Store, "a"), "a")
		time.Sleep(ttl)
		net.On().DropRequests()
		time.Sleep(time.Hour)
		b.run(b.candidate(judge(reg), "b"), "b")
		time.Sleep(ttl - time.Second)
		require.Equal(t, "a", b.leaders())
		time.Sleep(2 * time.Second)
		require.Equal(t, "a b", b.leaders())
	})
}

func TestWhereObserversJudgeWaitingIsFreeAndARefreshIsNoNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg, b := memregister.New(), newBallot(t)
		for _, id := range []string{"a", "b", "c"} {
			b.run(b.candidate(judge(reg), id, noHeir), id)
			synctest.Wait()
		}
		seen := 0
		go func() {
			for range election.Watch(t.Context(), judge(reg), b.name) {
				seen++
			}
		}()
		time.Sleep(ttl)
		before, written := reg.Requests(), reg.Writes()
		time.Sleep(100 * ttl)
		require.Equal(t, 1, seen, "one leader")
		refreshes := reg.Writes() - written
		require.InDelta(t, 330, refreshes, 30)
		require.Equal(t, refreshes, reg.Requests()-before, "nobody asks for anything but the leader's refreshes")
	})
}

func TestWhereObserversJudgeTheSafeIsHandedOverAndWhoIsPreferredLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg, b := memregister.New(), newBallot(t)
		stop := b.run(b.candidate(judge(reg), "a", byRank(1)), "a")
		time.Sleep(5 * ttl)
		b.run(b.candidate(judge(reg), "b", byRank(1)), "b")
		time.Sleep(5 * ttl)
		_ = stop()
		time.Sleep(ttl / 10)
		require.Equal(t, "a b", b.leaders(), "at once")
		b.run(b.candidate(judge(reg), "c", byRank(2)), "c")
		time.Sleep(20 * ttl)
		require.Equal(t, "a b c", b.leaders(), "to whom b gives way")
		require.NoError(t, election.RequestTransfer(t.Context(), judge(reg), b.name, "b"))
		time.Sleep(ttl / 10)
		require.Equal(t, "a b c b", b.leaders())
	})
}
