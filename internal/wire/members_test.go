package wire_test

import (
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/wire"
)

// open is the config of a member that has a list of its own, and need not agree on it.
func (c cluster) open(self string, list ...string) wire.Config {
	config := c.config(self)
	config.Protocol.Terms = []wire.Term{wire.Text("cluster", "test")}
	config.Members, config.Clients = list, 0
	return config
}

// knows has nodes take a list of members.
func knows(list []string, all ...*node) {
	for _, n := range all {
		require.NoError(n, n.SetMembers(list))
	}
}

// troubled waits until a node says why a member is not connected.
func (n *node) troubled(of, why string) {
	n.Helper()
	require.Eventually(n, func() bool {
		ok, err := n.connected(of)
		return !ok && err != nil && strings.Contains(err.Error(), why)
	}, patience, 10*time.Millisecond, "want %s\n%s", why, n.logged())
}

func TestMembersComeAndGoWhileOthersStayConnected(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	all := []*node{}
	for _, m := range c.members {
		all = append(all, c.start(c.open(m)))
		all[len(all)-1].delivers(all[len(all)-1], "alone")
	}
	knows(c.members, all...)
	for _, from := range all {
		for _, to := range all {
			from.delivers(to, "here")
		}
	}
	for i, gone := range all {
		rest := []*node{all[(i+1)%3], all[(i+2)%3]}
		shown := rest[0].leaf(rest[1].id)
		knows([]string{rest[0].id, rest[1].id}, rest...)
		for _, n := range rest {
			require.Len(t, n.Peers(), 2)
			gone.loses(n.id)
		}
		rest[0].delivers(rest[1], "without "+gone.id)
		for _, n := range rest {
			n.Send(gone.id, []byte("are you there?"))
			require.Same(t, shown, rest[0].leaf(rest[1].id), "they stay connected")
		}
		knows(c.members, rest...)
		for _, n := range rest {
			n.delivers(gone, "back "+gone.id)
			gone.delivers(n, "back "+gone.id)
		}
		require.False(t, gone.has(rest[0].id+": are you there?"))
	}
}

// leaf is the certificate that a member has shown for the connection that it has.
func (n *node) leaf(of string) any {
	n.Helper()
	for _, p := range n.Peers() {
		if p.Member == of {
			require.True(n, p.Connected)
			return p.Certificate
		}
	}
	return nil
}

// The list of one has both, that of the other only itself.
func TestAMemberLetsInOnlyThoseInItsOwnList(t *testing.T) {
	t.Parallel()
	for i, name := range []string{"the caller's", "the called one's"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, 2)
			host := c.start(c.open(c.members[i]))
			host.delivers(host, "ready")
			guest := c.start(c.open(c.members[1-i], c.members...))
			why := `it says that it is "` + guest.id + `", which is no member: the list of the other has "` + host.id + `"`
			guest.troubled(host.id, why)
			host.complains("which is no member")
			require.False(t, host.has(guest.id+": hello?"))
			knows(c.members, host)
			host.delivers(guest, "hello")
			guest.delivers(host, "hello")
		})
	}
}

func TestMembersOfOtherProtocolsAndClustersAreRefusedByBoth(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*wire.Protocol)
		want   string // said of the one that differs
	}{
		"another protocol": {func(p *wire.Protocol) { p.Name = "paxos" }, `it speaks the protocol "paxos", and the other "echo": list the addresses of members that speak the same`},
		"another version":  {func(p *wire.Protocol) { p.Version = 2 }, "it speaks version 2 of the protocol, and this one version 1"},
		"another cluster":  {func(p *wire.Protocol) { p.Terms[0] = wire.Text("cluster", "b") }, `its cluster is "b", and the other's "test": they must be the same`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, 2)
			ours, theirs := c.open(c.members[1], c.members...), c.open(c.members[0], c.members...)
			test.change(&theirs.Protocol)
			called := c.start(ours)
			called.delivers(called, "ready")
			caller := c.start(theirs)
			caller.troubled(called.id, "said of this side: "+test.want)
			called.complains(strings.ReplaceAll(test.want, `"`, `\"`))
			ok, _ := called.connected(caller.id)
			require.False(t, ok)
		})
	}
}

func TestAClientIsRefusedWhereThereIsRoomForNone(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	member := c.start(c.open(c.members[0]))
	member.delivers(member, "ready")
	client := c.start(c.open("", c.members...))
	client.troubled(member.id, "it is a client, and only members are let in here")
}

func TestAListThatIsWrongIsNotTaken(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	n := c.start(c.open(c.members[0], c.members...))
	require.ErrorContains(t, n.SetMembers([]string{"here"}), `member "here" is not host:port`)
	require.ErrorContains(t, n.SetMembers([]string{"a:1", "A:1"}), `member "a:1" is named twice`)
	require.Len(t, n.Peers(), 2)
	require.NoError(t, n.SetMembers(nil))
	require.Len(t, n.Peers(), 1, "itself")
	require.ErrorContains(t, c.start(c.open("", c.members...)).SetMembers(nil), "no members")
}

func TestOneThatIsNoMemberAnyMoreIsNotCalled(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	listener, err := net.Listen("tcp", c.members[1])
	require.NoError(t, err)
	defer listener.Close()
	n := c.start(c.open(c.members[0], c.members...))
	const silence = 2 * time.Second // called each half second, or more often
	call := func(d time.Duration) error {
		require.NoError(t, listener.(*net.TCPListener).SetDeadline(time.Now().Add(d)))
		conn, err := listener.Accept()
		if err == nil {
			conn.Close()
		}
		return err
	}
	require.NoError(t, call(patience))
	knows(nil, n)
	_ = call(silence) // which may have been under way
	require.ErrorIs(t, call(silence), os.ErrDeadlineExceeded)
	knows(c.members, n)
	require.NoError(t, call(patience))
}

// Whether they come before Close or after it, nothing is left behind.
func TestMembersMayBeSetWhileTheNodeIsClosed(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	for range 20 {
		n := c.start(c.open(c.members[1]))
		var both sync.WaitGroup
		both.Go(func() { knows(c.members, n); knows(nil, n); knows(c.members, n) })
		both.Go(func() { require.NoError(t, n.Close()) })
		both.Wait()
	}
}
