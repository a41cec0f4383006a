package paxoskv_test

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/internal/witness"
)

// Members in processes and on hosts of their own: the whole of the package, with the
// engine, TLS and TCP, while packets are lost and processes are killed.
const (
	hostsTTL    = time.Second
	hostsMaxTTL = 2 * time.Second
	// patience is what a busy machine may add to anything that is owed.
	hostsPatience = time.Minute
)

// hosts are members on hosts of their own, and what happened to them.
type hosts struct {
	*testing.T
	witness.Chronicle
	members []*member
}

type member struct {
	part
	*witness.Process
	host *testenv.Host
	said *testenv.Speech
}

// startHosts starts members that have never run before.
func startHosts(t *testing.T, n int) *hosts {
	t.Helper()
	network, authority := testenv.NewNetwork(t), testenv.NewAuthority(t)
	all := &hosts{T: t}
	peers := []string{}
	for i := range n {
		m := &member{host: network.Host(), said: &testenv.Speech{}}
		m.part = part{Who: string(rune('a' + i)), ID: m.host.Addr() + ":7000", Dir: t.TempDir(), TTL: hostsTTL, MaxTTL: hostsMaxTTL}
		m.Cert, m.Key, m.CA = authority.Files(m.host.Addr())
		peers = append(peers, m.ID)
		all.members = append(all.members, m)
		all.on(m, "", "ip", "link", "set", "lo", "up") // it sends to itself as well
	}
	t.Cleanup(func() {
		for _, m := range all.members {
			m.Stdin.Close()
		}
		for _, m := range all.members {
			_ = m.Wait()
			if t.Failed() {
				t.Logf("%s, on %s, said:\n%s", m.Who, m.host.Addr(), m.said)
			}
		}
	})
	for _, m := range all.members {
		m.Peers = peers
		all.start(m)
	}
	return all
}

// start starts a member's process.
func (h *hosts) start(m *member) {
	h.Helper()
	cmd, err := witness.Again(memberVariable, m.part)
	require.NoError(h, err)
	cmd.Stderr = m.said
	m.host.Command(cmd)
	m.Process, err = witness.Start(cmd, h.Note)
	require.NoError(h, err)
}

// kill ends a member as a power cut would.
func (h *hosts) kill(m *member) {
	h.Helper()
	h.Note(history.Event{Who: m.Who, Kind: history.Killed})
	require.NoError(h, m.Cmd.Process.Kill())
	_ = m.Wait() // it was killed
}

func (h *hosts) fault(format string, args ...any) time.Duration {
	now := boottime.Now()
	h.Note(history.Event{At: now, Kind: history.Fault, Text: fmt.Sprintf(format, args...)})
	return now
}

func (h *hosts) history() history.History { return h.History(history.About{TTL: hostsTTL}) }

// await waits for an event.
func (h *hosts) await(what string, is func(history.Event) bool) history.Event {
	h.Helper()
	e, _, ok := h.Await(0, hostsPatience, is)
	if !ok {
		require.Fail(h, "there was no "+what, "%s", history.Timeline(h.history(), 100))
	}
	return e
}

// elected waits for somebody to be elected after a time, and to have refreshed since.
func (h *hosts) elected(after time.Duration, among ...*member) *member {
	h.Helper()
	e := h.await("leader", func(e history.Event) bool {
		return e.Kind == history.Extended && e.At > after && slices.ContainsFunc(among, func(m *member) bool { return m.Who == e.Who })
	})
	return among[slices.IndexFunc(among, func(m *member) bool { return m.Who == e.Who })]
}

// without returns the members but for some.
func (h *hosts) without(some ...*member) []*member {
	return slices.DeleteFunc(slices.Clone(h.members), func(m *member) bool { return slices.Contains(some, m) })
}

// split lets the two sides hear nothing of each other.
func (h *hosts) split(some ...*member) {
	h.Helper()
	others := h.without(some...)
	for _, m := range h.members {
		from := some
		if slices.Contains(some, m) {
			from = others
		}
		addrs := []string{}
		for _, other := range from {
			addrs = append(addrs, other.host.Addr())
		}
		h.on(m, fmt.Sprintf(`table ip split {
	chain input {
		type filter hook input priority 0
		ip saddr { %s } drop
	}
}
`, strings.Join(addrs, ", ")), "nft", "-f", "-")
	}
}

// mend ends that.
func (h *hosts) mend() {
	h.Helper()
	for _, m := range h.members {
		h.on(m, "delete table ip split\n", "nft", "-f", "-")
	}
}

// on carries out a command on a member's host.
func (h *hosts) on(m *member, input, name string, args ...string) {
	h.Helper()
	cmd := exec.Command(name, args...)
	cmd.Stdin = strings.NewReader(input)
	m.host.Command(cmd)
	text, err := cmd.CombinedOutput()
	require.NoError(h, err, "%s", text)
}

// judge wants at least so many terms, and that each promise was kept in them.
func (h *hosts) judge(terms int) {
	h.Helper()
	happened := h.history()
	findings := oracle.Judge(happened, oracle.OneLeader, oracle.TokensGrow, oracle.WorkWithinTerm)
	require.True(h, findings.AllKept(), "%s\n%s", findings, history.Timeline(happened, 100))
	require.GreaterOrEqual(h, len(happened.Stretches()), terms)
	h.Logf("%s\n%s", findings, history.Timeline(happened, 100))
}

func TestOneOfFiveLeadsWhateverTheNetworkDoes(t *testing.T) {
	t.Parallel()
	h := startHosts(t, 5)
	leader := h.elected(0, h.members...)

	companion := h.without(leader)[0]
	h.fault("%s and %s are cut off from the other three", leader.Who, companion.Who)
	h.split(leader, companion)
	cut := boottime.Now()
	h.await("end of the term in the minority", func(e history.Event) bool { return e.Kind == history.Ended && e.Who == leader.Who })
	next := h.elected(cut, h.without(leader, companion)...)
	h.mend()
	h.fault("all are connected again")

	for text, fault := range map[string]func(*testenv.Host){
		"what %s sends is lost":      (*testenv.Host).CutRequests,
		"what is sent to %s is lost": (*testenv.Host).CutReplies,
	} {
		begin := h.fault(text, next.Who)
		fault(next.host)
		was := next
		next = h.elected(boottime.Now()+hostsTTL, h.without(was)...)
		was.host.Heal()
		h.fault("%s is connected again, %v after", was.Who, boottime.Now()-begin)
	}

	h.kill(next)
	killed := boottime.Now()
	h.start(next)
	next = h.elected(killed, h.members...) // the one that is back may well be the first
	h.kill(next)
	h.elected(boottime.Now(), h.without(next)...)
	h.start(next)
	h.judge(6)
}

func TestTwoOfThreeThatAreRestartedWaitUntilNothingTheyForgotMatters(t *testing.T) {
	t.Parallel()
	h := startHosts(t, 3)
	leader := h.elected(0, h.members...)
	others := h.without(leader)

	h.kill(leader)
	h.kill(others[0])
	killed := boottime.Now()
	h.start(leader)
	h.start(others[0])
	again := h.elected(killed, h.members...)
	first := h.history().Of("", history.Elected)
	elected := first[slices.IndexFunc(first, func(e history.Event) bool { return e.At > killed })]
	require.Greater(t, elected.At-killed, hostsMaxTTL, "without a quarantine, two could lead")

	// Those two again, of whom one leads perhaps: all that is left is the third.
	h.kill(leader)
	h.kill(others[0])
	killed = boottime.Now()
	h.start(others[0])
	h.start(leader)
	h.elected(killed+hostsMaxTTL, h.members...)
	require.NotNil(t, again)
	h.judge(3)
}
