package group_test

import (
	"bytes"
	"errors"
	"log/slog"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/group"
	"github.com/electkv/election/internal/invitation"
	"github.com/electkv/election/internal/invitation/codec"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/internal/wire"
)

// A trio is the options of three members on this machine's loopback, with TLS.
type trio struct {
	*testing.T
	chronicle
	opts group.Options
}

func newTrio(t *testing.T) *trio {
	t.Helper()
	c := &trio{T: t, opts: group.Options{Cluster: "test", TLS: testenv.NewAuthority(t).Config("127.0.0.1"), Interval: 100 * time.Millisecond}}
	for range 3 {
		c.opts.Peers = append(c.opts.Peers, testenv.FreeAddr(t))
	}
	t.Cleanup(func() { require.Empty(t, c.findings()) })
	return c
}

// start starts a member, with what is changed of its options, and returns what it logs.
func (c *trio) start(i int, change func(*group.Options)) (*actor, *testenv.Speech) {
	c.Helper()
	said := &testenv.Speech{}
	opts := c.opts
	opts.ID, opts.Logger = opts.Peers[i], slog.New(slog.NewTextHandler(said, nil))
	if change != nil {
		change(&opts)
	}
	m, err := group.New(&opts)
	// A process that another test starts has this one's listeners open, until it executes its program.
	for end := time.Now().Add(patience); errors.Is(err, syscall.EADDRINUSE) && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		m, err = group.New(&opts)
	}
	require.NoError(c, err)
	a := act(m, opts.ID, c.note, obey)
	c.Cleanup(func() { require.NoError(c, a.quit()) })
	return a, said
}

func (c *trio) merge(ids ...string) {
	c.Helper()
	require.Eventually(c, func() bool { return c.together(ids...) }, c.opts.Merged()+patience, 5*time.Millisecond, "%v are no group: %v", ids, &c.chronicle)
}

// Each is refused, says so, and is a group of its own, and the other two are one.
func TestAProcessThatIsSetUpOtherwiseIsRefusedAndBothSaySo(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*group.Options)
		want   string
	}{
		"another cluster":   {func(o *group.Options) { o.Cluster = "other" }, `cluster is`},
		"another interval":  {func(o *group.Options) { o.Interval *= 2; o.Drain = time.Second }, `interval is`},
		"another drain":     {func(o *group.Options) { o.Drain = time.Minute }, `drain is`},
		"another authority": {func(o *group.Options) { o.TLS = testenv.NewAuthority(t).Config("127.0.0.1") }, `certificate`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newTrio(t)
			_, first := c.start(0, nil)
			c.start(1, nil)
			_, odd := c.start(2, test.change)
			c.merge(c.opts.Peers[:2]...)
			c.merge(c.opts.Peers[2])
			for _, said := range []*testenv.Speech{first, odd} {
				require.Eventually(t, func() bool { return bytes.Contains([]byte(said.String()), []byte(test.want)) }, patience, 10*time.Millisecond, "%s", said)
			}
		})
	}
}

func TestAProcessThatIsInNobodysListIsRefused(t *testing.T) {
	t.Parallel()
	c := newTrio(t)
	all := c.opts.Peers
	known := func(o *group.Options) { o.Peers = all[:2] }
	first, said := c.start(0, known)
	second, _ := c.start(1, known)
	c.start(2, nil)
	c.merge(all[:2]...)
	c.merge(all[2])
	require.Eventually(t, func() bool { return bytes.Contains([]byte(said.String()), []byte("which is no member")) }, patience, 10*time.Millisecond, "%s", said)
	require.NoError(t, first.SetPeers(all))
	require.NoError(t, second.SetPeers(all))
	c.merge(all...)
	require.NoError(t, first.SetPeers(all[:2]))
	require.NoError(t, second.SetPeers(all[:2]))
	c.merge(all[:2]...)
	c.merge(all[2])
}

// The second one listens elsewhere, so that nothing but the protocol can tell.
func TestOfTwoProcessesWithOneIDOnlyOneIsInTheGroup(t *testing.T) {
	t.Parallel()
	c := newTrio(t)
	c.start(0, nil)
	c.start(1, nil)
	c.merge(c.opts.Peers[:2]...)
	opts, said := c.opts, &testenv.Speech{}
	opts.ID, opts.Listen, opts.Logger = opts.Peers[0], testenv.FreeAddr(t), slog.New(slog.NewTextHandler(said, nil))
	twin, err := group.New(&opts)
	require.NoError(t, err)
	a := act(twin, opts.ID+"#twin", c.note, obey)
	defer func() { require.NoError(t, a.quit()) }()
	c.merge(opts.ID + "#twin")
	says(t, said, "started twice")
	c.merge(c.opts.Peers[:2]...)
}

func TestAMemberThatIsClosedIsNotMissedFirst(t *testing.T) {
	t.Parallel()
	c := newTrio(t)
	c.opts.Interval = 7 * time.Second // one is missed after two and a half of them at least
	all := []*actor{}
	for i := range c.opts.Peers {
		a, _ := c.start(i, nil)
		all = append(all, a)
	}
	c.merge(c.opts.Peers...)
	leader, rest := 0, []string{}
	for i, id := range c.opts.Peers {
		if c.now()[id].Leader == id {
			leader = i
		} else {
			rest = append(rest, id)
		}
	}
	began, left := time.Now(), c.now()
	require.NoError(t, all[leader].quit())
	require.Less(t, time.Since(began), c.opts.Interval)
	require.Eventually(t, func() bool { return c.now()[rest[0]].Number != left[rest[0]].Number }, 2*c.opts.Interval, time.Millisecond, "%v", &c.chronicle)
	c.merge(rest...)
}

// A process with a certificate of the authority says what it may not.
func TestWhatNobodyMayHaveSaidEndsTheConnectionAndIsLogged(t *testing.T) {
	t.Parallel()
	c := newTrio(t)
	number := invitation.Number{By: invitation.ID(c.opts.Peers[0]), Incarnation: 1, Counter: 1}
	for name, test := range map[string]struct{ said, want string }{
		"for another's group": {string(codec.Encode(invitation.Heartbeat{Number: number})), "speaks for group"},
		"bytes of no kind":    {"?", "unknown kind"},
		"nothing":             {"", "malformed"},
		"a group of none":     {string(codec.Encode(invitation.Probe{Number: invitation.Number{By: invitation.ID(c.opts.Peers[2])}})), "a group of 0"},
	} {
		t.Run(name, func(t *testing.T) {
			first, said := c.start(0, nil)
			second, _ := c.start(1, nil)
			c.merge(c.opts.Peers[:2]...)
			node, err := wire.New(wire.Config{
				Protocol: wire.Protocol{Name: "groups", Version: 1, Terms: []wire.Term{
					wire.Text("cluster", c.opts.Cluster), wire.Span("interval", c.opts.Interval), wire.Span("drain", 10*c.opts.Interval),
				}},
				Members: c.opts.Peers, Self: c.opts.Peers[2], MaxWait: time.Second, TLS: c.opts.TLS,
			})
			require.NoError(t, err)
			require.NoError(t, node.Listen(func(string, []byte) error { return nil }))
			require.Eventually(t, func() bool {
				node.Send(c.opts.Peers[0], []byte(test.said))
				return bytes.Contains([]byte(said.String()), []byte(test.want))
			}, patience, 10*time.Millisecond, "%s", said)
			c.merge(c.opts.Peers[:2]...) // as they were
			require.NoError(t, node.Close())
			require.NoError(t, first.quit())
			require.NoError(t, second.quit())
			c.forget()
		})
	}
}

func TestFilesThatAreWrongAreRefused(t *testing.T) {
	t.Parallel()
	cert, key, ca := testenv.NewAuthority(t).Files("127.0.0.1")
	id := testenv.FreeAddr(t)
	opts := group.Options{ID: id, Peers: []string{id}, Cluster: "test"}
	opts.GetTLS = (&group.Files{Cert: cert, Key: key, CA: ca}).TLS
	m, err := group.New(&opts)
	require.NoError(t, err)
	require.NoError(t, m.Close())
	opts.GetTLS = (&group.Files{Cert: cert, Key: key, CA: "nowhere"}).TLS
	_, err = group.New(&opts)
	require.ErrorContains(t, err, "group: authority: open nowhere")
}
