package group_test

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv"
)

// hosts are processes on hosts of their own, whose network is at fault.
type hosts struct {
	*processes
	hosts []*testenv.Host
}

// startHosts starts one process on each of so many hosts.
func startHosts(t *testing.T, n int) *hosts {
	t.Helper()
	network, authority := testenv.NewNetwork(t), testenv.NewAuthority(t)
	h := &hosts{}
	ids := []string{}
	for range n {
		host := network.Host()
		h.hosts = append(h.hosts, host)
		ids = append(ids, host.Addr()+":7000")
		on(t, host, "", "ip", "link", "set", "lo", "up") // it meets itself first
	}
	h.processes = launch(t, ids, h.hosts, func(i int) (string, string, string) { return authority.Files(h.hosts[i].Addr()) })
	return h
}

// on carries out a command on a host.
func on(t *testing.T, host *testenv.Host, input, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Stdin = strings.NewReader(input)
	host.Command(cmd)
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", text)
}

// deaf has a process hear nothing from some others.
func (h *hosts) deaf(p *process, others ...*process) {
	h.Helper()
	addrs := []string{}
	for _, other := range others {
		addrs = append(addrs, other.host.Addr())
	}
	on(h.T, p.host, fmt.Sprintf(`table ip split {
	chain input {
		type filter hook input priority 0
		ip saddr { %s } drop
	}
}
`, strings.Join(addrs, ", ")), "nft", "-f", "-")
}

// split lets two sides hear nothing of each other.
func (h *hosts) split(one, other []*process) {
	h.Helper()
	for _, p := range one {
		h.deaf(p, other...)
	}
	for _, p := range other {
		h.deaf(p, one...)
	}
}

// mend ends what split and deaf have done to some.
func (h *hosts) mend(some ...*process) {
	h.Helper()
	for _, p := range some {
		on(h.T, p.host, "delete table ip split\n", "nft", "-f", "-")
	}
}

// parted splits two processes of a group, of which number 0 leads, until something holds. If the
// group has got another leader first, on a busy machine, it does that again.
func (h *hosts) parted(all []*process, one, other int, holds func(seen *chronicle, a, b *process) bool) {
	h.Helper()
	held := false
	for range 5 {
		leader, others := h.leader(h.merge(all...), all...)
		ranked := append([]*process{leader}, others...)
		a, b := ranked[one], ranked[other]
		h.split([]*process{a}, []*process{b})
		time.Sleep(2 * time.Second)
		require.Eventually(h, func() bool {
			seen := &chronicle{notes: h.all()}
			held = holds(seen, a, b)
			now := seen.now()[leader.Who]
			return held || now.Number != "" && now.Leader != leader.ID
		}, merged()+patience, 5*time.Millisecond, "%v", &h.chronicle)
		h.mend(a, b)
		if held {
			return
		}
	}
	require.Fail(h, "the leader changes each time", "%v", &h.chronicle)
}

func TestGroupsOnHostsWhoseNetworkFails(t *testing.T) {
	t.Parallel()
	h := startHosts(t, 5)
	all := h.list
	two, three := all[:2], all[2:]
	h.merge(all...)

	h.Log("a partition")
	h.split(two, three)
	h.merge(two...)
	h.merge(three...)
	h.mend(all...)
	h.merge(all...)

	h.Log("a cut in one direction")
	for _, cut := range []func(*testenv.Host){(*testenv.Host).CutRequests, (*testenv.Host).CutReplies} {
		cut(all[3].host)
		h.merge(all[3])
		h.merge(all[0], all[1], all[2], all[4])
		all[3].host.Heal()
		h.merge(all...)
	}

	h.Log("two that do not reach each other, and a leader that reaches both")
	h.parted(all, 1, 2, func(seen *chronicle, _, _ *process) bool {
		return seen.together(whoOf(all)...) // as they were, or again
	})

	h.Log("a leader that does not reach one member, which all others reach")
	h.parted(all, 0, 1, func(seen *chronicle, a, b *process) bool {
		now := seen.now()
		g, other := now[a.Who], now[b.Who]
		return g.Number != other.Number && g.Number != "" && other.Number != ""
	})
	h.merge(all...)

	h.Log("a link that flaps")
	for range 10 {
		all[4].host.Cut()
		time.Sleep(300 * time.Millisecond)
		all[4].host.Heal()
		time.Sleep(300 * time.Millisecond)
	}
	h.merge(all...)

	h.Log("a network that loses packets")
	for _, p := range all {
		p.host.Loss(10)
	}
	time.Sleep(5 * time.Second)
	for _, p := range all {
		p.host.Heal()
	}
	h.merge(all...)

	h.Log("a power cut")
	for _, p := range all {
		h.kill(p)
	}
	for _, p := range all {
		h.start(p)
	}
	h.merge(all...)
}

func TestASlowProcessOnAnotherHostHoldsAMergeUp(t *testing.T) {
	t.Parallel()
	h := startHosts(t, 3)
	all := h.list
	h.merge(all...)
	h.kill(all[2])
	all[2].Slow = time.Second
	h.merge(all[:2]...)
	all[2].host.Cut()
	h.start(all[2])
	h.merge(all[2])
	all[2].host.Heal()
	seen := h.merge(all...)
	g := seen.now()[all[0].Who]
	stopped := time.Duration(0)
	for _, n := range seen.of(all[2].Who, done) {
		stopped = max(stopped, n.At)
	}
	require.NotZero(h, stopped, "it led alone")
	for _, p := range all {
		for _, n := range seen.of(p.Who, in) {
			require.False(h, n.Group.Number == g.Number && n.At < stopped, "%s is in %s before the work of %s has stopped", p.Who, g.Number, all[2].Who)
		}
	}
}
