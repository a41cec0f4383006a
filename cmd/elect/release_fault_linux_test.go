package main

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv"
)

// A succession of two: one leads by a link that can be spoiled, and the other waits.
type pair struct {
	*place
	link          *testenv.Proxy
	first, second *proc
	child, guard  int // of the first
}

// lead starts both in a store.
func lead(t *testing.T, url, ttl string) *pair {
	t.Helper()
	p := at(t, url)
	server := strings.Split(url, "/")[2]
	two := &pair{place: p, link: testenv.NewProxy(t, server)}
	direct := p.store
	p.store = strings.Replace(url, server, two.link.Addr(), 1)
	two.first = p.run(stay, "--id", "first", "--ttl", ttl)
	two.child, two.guard = p.pid("child"), guardOf(t, two.first)
	p.store = direct
	two.second = p.run(`echo $$ >"$1/second"; exec sleep 1000`, "--id", "second", "--ttl", ttl)
	eventually(t, "the second waits", func() bool { // or leads, if the first has lost its term
		return strings.Contains(two.second.err.String(), "waiting") || strings.Contains(two.second.err.String(), isLeader)
	})
	return two
}

// fading are stores with a TTL that passes in a test.
func fading(t *testing.T) map[string]string {
	t.Helper()
	all := servers(t)
	delete(all, "consul") // a session ends a TTL late, and what is left is like in the others
	return all
}

// Nobody is left who could release the record, and what was asked for was never heard.
func TestWhatIsLeftIsTheTTLIfWhoeverReleasesIsKilled(t *testing.T) {
	const tries = 300 * time.Millisecond // after which it is in the middle of trying to release
	for what, kill := range map[string]func(t *testing.T, p *pair) error{
		"a guard": func(t *testing.T, p *pair) error {
			p.first.send(t, syscall.SIGKILL)
			gone(t, p.child)
			time.Sleep(tries)
			return syscall.Kill(p.guard, syscall.SIGKILL)
		},
		"an elect whose command has ended": func(t *testing.T, p *pair) error {
			p.first.send(t, syscall.SIGTERM)
			gone(t, p.child)
			time.Sleep(tries)
			return p.first.Process.Kill()
		},
	} {
		for name, url := range fading(t) {
			t.Run(what+", "+name, func(t *testing.T) {
				t.Parallel() // mostly it waits
				// With the default grace and 8 s it tries to release for 1.5 s.
				for ttl := 8 * time.Second; !leaves(t, url, ttl, kill); ttl *= 2 {
					require.Less(t, ttl, 30*time.Second, "this machine is too busy to kill it meanwhile")
				}
			})
		}
	}
}

// leaves reports whether whoever releases was killed in time.
func leaves(t *testing.T, url string, ttl time.Duration, kill func(t *testing.T, p *pair) error) bool {
	t.Helper()
	p := lead(t, url, ttl.String())
	before, held := p.record()
	last := time.Now()
	if !held || !alive(p.child) {
		return false
	}
	p.link.DropRequests()
	if kill(t, p) != nil {
		return false
	}
	gone(t, p.guard)
	p.link.Heal()
	now, held := p.record()
	if time.Since(last) > ttl/2 {
		return false // it may just have ended
	}
	require.True(t, held, "what was never heard has had an effect")
	require.True(t, now.Owns(before))
	p.pid("second")
	life, err := p.kv.Lifetime(ttl)
	require.NoError(t, err)
	require.Less(t, time.Since(last), life.Max+30*time.Second)
	t.Log("the next command runs after", time.Since(last))
	return true
}

func TestAGuardGivesUpWhenTheTTLHasPassed(t *testing.T) {
	for name, url := range fading(t) {
		for what, harm := range map[string]func(*testenv.Proxy){
			"refused": (*testenv.Proxy).Cut,
			"silent":  (*testenv.Proxy).BlackHole,
		} {
			t.Run(name+" is "+what, func(t *testing.T) {
				t.Parallel() // mostly it waits
				for ttl := 3 * time.Second; !givesUp(t, url, ttl, harm); ttl *= 2 {
					require.Less(t, ttl, 20*time.Second, "somebody has lost a term")
				}
			})
		}
	}
}

// givesUp reports whether the first led until the harm was done, and the second then.
func givesUp(t *testing.T, url string, ttl time.Duration, harm func(*testenv.Proxy)) bool {
	t.Helper()
	p := lead(t, url, ttl.String())
	harm(p.link)
	if !alive(p.child) {
		return false
	}
	killed := time.Now()
	p.first.send(t, syscall.SIGKILL)
	p.pid("second")
	gone(t, p.guard)
	require.Greater(t, time.Since(killed), ttl*9/10, "it tries for a TTL")
	rec, held := p.record()
	if !held {
		return false
	}
	p.link.Heal() // nothing comes late
	time.Sleep(time.Second)
	now, held := p.record()
	return held && now.Owns(rec)
}
