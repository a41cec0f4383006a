//go:build linux

package interop

import (
	"cmp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/mistake"
	"github.com/electkv/election/internal/testenv"
)

// planted are mistakes, and what the oracle says of them.
var planted = []struct{ bug, red string }{
	{bugTakesOver, "before its time"},
	{bugDeletes, "before its time"},
	{bugNoRefresh, "when its record was gone"},
}

// red plays a fleet with a planted mistake until the oracle sees it.
func (f *fleet) red(want string) {
	f.t.Helper()
	f.enter("old-1", "old-2", "new-1", "new-2")
	broken := []string{}
	f.direct(*stretch+20*time.Second, func() bool {
		broken = f.story().Judge().Broken
		return strings.Contains(strings.Join(broken, "\n"), want)
	})
	if !strings.Contains(strings.Join(broken, "\n"), want) {
		f.t.Logf("history: %s\n%s", f.save(), history.Timeline(f.events(), 150))
		f.t.Fatal(mistake.Report("the rules say only this: "+cmp.Or(strings.Join(broken, "; "), "nothing is wrong"), "cd test/interop && "+f.about.Command))
	}
	f.t.Logf("found: %s", broken[0])
}

// TestPlantedMistakesAreFound shows on real servers that a mixed fleet can fail.
func TestPlantedMistakesAreFound(t *testing.T) {
	t.Parallel()
	find := func(name string, s setup, addr func(testing.TB) string, want string) {
		t.Run(name+"/"+s.bug, func(t *testing.T) {
			t.Parallel()
			if s.bug == bugNoRefresh {
				s.hold, s.spared = [2]time.Duration{3 * s.ttl, 4 * s.ttl}, true
			}
			newFleet(t, s, addr(t)).red(want)
		})
	}
	for _, p := range planted {
		for name, s := range map[string]setup{"redis": redisSetup("redsync"), "consul": consulSetup("api.Lock"), "etcd": etcdSetup(t, "concurrency.Mutex", layoutClaim)} {
			s.bug = p.bug
			find(name, s, map[string]func(testing.TB) string{"redis": testenv.Redis, "consul": testenv.Consul, "etcd": testenv.Etcd}[name], p.red)
		}
	}
	s := etcdSetup(t, "concurrency.Election", layoutQueue)
	s.bug = bugIgnoresLine
	find("etcd", s, testenv.Etcd, "while the store showed")
}

// TestABareDelEndsATermOfOursInTime is about work that took twice as long as its
// lock, at whose end it deletes whatever is there; and about one of ours that
// does not notice.
func TestABareDelEndsATermOfOursInTime(t *testing.T) {
	t.Parallel()
	for _, bug := range []string{"", bugBlindRefresh} {
		t.Run("ours "+cmp.Or(bug, "refreshes"), func(t *testing.T) {
			t.Parallel()
			s := redisSetup("SET NX PX and DEL").slower().slower() // ours has to lead well before the DEL
			s.bug, s.hold = bug, [2]time.Duration{2 * s.ttl, 2 * s.ttl}
			f := newFleet(t, s, testenv.Redis(t))
			f.enter("old-1")
			first := f.await("the old one holds", patience, elected("old-1", 0))
			f.hold, f.rest = [2]time.Duration{time.Minute, time.Minute}, [2]time.Duration{time.Minute, time.Minute}
			f.enter("new-1")
			f.await("ours leads", patience, elected("new-1", 0))
			deleted := f.await("the DEL of the old one", patience, func(e history.Event) bool {
				return e.Kind == history.Answered && e.Op == opDel && e.At > first.At
			})
			require.Contains(t, deleted.Value, "new-1.", "it takes the record of ours")
			if bug != "" {
				require.Eventually(t, func() bool {
					return strings.Contains(strings.Join(f.story().Judge().Broken, "\n"), "had deleted its record; at most")
				}, patience, 50*time.Millisecond, mistake.Report("the rules do not say that ours had deleted the record", "cd test/interop && "+f.about.Command))
				return
			}
			f.await("the end of our term", patience, func(e history.Event) bool {
				return e.Kind == history.Ended && e.Who == "new-1"
			})
			v := f.story().Judge()
			require.Equal(t, 1, v.Erased)
			require.Empty(t, v.Broken)
			t.Logf("noticed after %v", v.Slowest)
		})
	}
}
