package wire_test

import (
	"crypto/tls"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/leak"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/internal/wire"
)

func TestEachMemberSendsToEachOtherAndToItself(t *testing.T) {
	t.Parallel()
	all := newCluster(t, 3).startAll()
	for _, from := range all {
		for _, to := range all {
			from.delivers(to, "hello")
		}
	}
	for _, n := range all {
		require.Len(t, n.Peers(), 3)
		for _, p := range n.Peers() {
			require.True(t, p.Connected)
		}
		require.NotContains(t, n.logged(), "it is this side that calls", "a knock is no trouble")
	}
}

func TestAMessageWaitsForTheConnection(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	config := c.config(c.members[0])
	config.MaxWait = time.Minute
	caller := c.start(config)
	caller.Send(c.members[1], []byte("early?"))
	config = c.config(c.members[1])
	config.MaxWait = time.Minute
	called := c.start(config)
	require.Eventually(t, func() bool { return caller.has(called.id + ": got early") }, patience, time.Millisecond)
}

func TestAMessageOfTheLargestSizeArrivesAndALargerOneIsNotSent(t *testing.T) {
	t.Parallel()
	all := newCluster(t, 2).startAll()
	largest := strings.Repeat("x", wire.MaxMessage)
	require.Eventually(t, func() bool {
		all[0].Send(all[1].id, []byte(largest))
		return all[1].has(all[0].id + ": " + largest)
	}, patience, 50*time.Millisecond)
	require.Eventually(t, func() bool {
		all[0].Send(all[1].id, []byte(largest+"y"))
		return strings.Contains(all[0].logged(), "it has 1048577 bytes, where 1048576 are the most")
	}, patience, 50*time.Millisecond)
	all[0].delivers(all[1], "after it")
	require.False(t, all[1].has(all[0].id+": "+largest+"y"))
}

func TestAClientAsksMembersAndIsAnswered(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	members := c.startAll()
	config := c.config("")
	config.TLS = c.authority.Config("whoever")
	client := c.start(config)
	for _, m := range members {
		client.delivers(m, "question")
	}
	require.NoError(t, client.Close())
	require.Never(t, func() bool { return strings.Contains(members[0].logged(), "client/") }, 100*time.Millisecond, 10*time.Millisecond,
		"a client that goes is no trouble")
}

func TestAMemberThatWasRestartedIsLetInAgain(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	all := c.startAll()
	all[0].delivers(all[1], "before")
	for i, other := range []int{1, 0} { // the one that calls, and the one that is called
		require.NoError(t, all[i].Close())
		all[i] = c.start(c.config(c.members[i]))
		all[0].delivers(all[1], fmt.Sprint("after restart of ", i))
		all[1].delivers(all[0], fmt.Sprint("after restart of ", i))
		require.Len(t, all[other].Peers(), 2)
	}
}

func TestAProcessThatIsStartedTwiceDoesNotTakePart(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	all := c.startAll()
	for _, m := range c.members {
		config := c.config(m)
		config.Listen = testenv.FreeAddr(t)
		second := c.start(config)
		second.complains("started twice")
		for _, p := range second.Peers() {
			require.False(t, p.Connected, "%s calls %s", m, p.Member)
		}
	}
	for _, from := range all {
		for _, to := range all {
			from.delivers(to, "still")
		}
	}
}

func TestASecondProcessAtTheSameAddressDoesNotStart(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	c.start(c.config(c.members[0]))
	second, err := wire.New(c.config(c.members[0]))
	require.NoError(t, err)
	require.ErrorContains(t, second.Listen(nil), "is the member started twice")
	require.NoError(t, second.Close())
}

// throughProxy starts two members, of which the first calls the second through a proxy.
func throughProxy(t *testing.T) (caller, called *node, proxy *testenv.Proxy) {
	for {
		listen := testenv.FreeAddr(t)
		proxy = testenv.NewProxy(t, listen)
		c := clusterAt(t, testenv.FreeAddr(t), proxy.Addr())
		if self := c.members[0]; self != proxy.Addr() {
			config := c.config(c.members[1])
			config.Listen = listen
			return c.start(c.config(self)), c.start(config), proxy
		}
	}
}

func TestABlackHoleIsNoticedByBothAndLeft(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(*testenv.Proxy){
		"both ways": (*testenv.Proxy).BlackHole,
		"requests":  (*testenv.Proxy).DropRequests,
		"replies":   (*testenv.Proxy).DropReplies,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			caller, called, proxy := throughProxy(t)
			caller.delivers(called, "before")
			called.delivers(caller, "before")
			fault(proxy)
			caller.loses(called.id)
			called.loses(caller.id)
			proxy.Heal()
			caller.delivers(called, "after")
			called.delivers(caller, "after")
		})
	}
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	for name, test := range map[string]struct {
		change func(*wire.Config)
		want   string
	}{
		"no protocol":     {func(x *wire.Config) { x.Protocol.Name = "" }, `a protocol with the name "": use lower-case letters`},
		"a loud protocol": {func(x *wire.Config) { x.Protocol.Name = "Echo" }, `a protocol with the name "Echo"`},
		"a long text":     {term(wire.Text("cluster", strings.Repeat("x", wire.MaxHello))), "where 16384 are the most"},
		"a wrong text":    {term(wire.Text("cluster", "\xff")), "a text that is too long, or not UTF-8"},
		"a wrong number":  {term(wire.Number("drift", -1, "‰")), "or a number below 0 or above 2147483647"},
		"no members":      {func(x *wire.Config) { x.Self, x.Members = "", nil }, "no members"},
		"a member twice":  {func(x *wire.Config) { x.Members = []string{"a:1", "A:1"} }, `member "a:1" is named twice`},
		"no port":         {func(x *wire.Config) { x.Members = []string{"a"} }, `member "a" is not host:port`},
		"port 0":          {func(x *wire.Config) { x.Members = []string{"a:0"} }, "with a port from 1 to 65535"},
		"no address":      {func(x *wire.Config) { x.Self = "a" }, `member "a" is not host:port`},
		"no wait":         {func(x *wire.Config) { x.MaxWait = 0 }, "messages that wait for 0s: want more than 0"},
		"no TLS":          {func(x *wire.Config) { x.TLS = nil }, "members need a certificate"},
		"no certificate":  {func(x *wire.Config) { x.TLS.Certificates = nil }, "no certificate"},
		"no authority":    {func(x *wire.Config) { x.TLS.RootCAs = nil }, "no certificate authority"},
		"no verification": {func(x *wire.Config) { x.TLS.InsecureSkipVerify = true }, "any host could vote"},
		"another host's certificate": {func(x *wire.Config) {
			x.TLS.Certificates = []tls.Certificate{c.authority.Certificate("127.0.0.2", "host")}
		}, "it needs the host of the member's address as a subject alternative name"},
		"another authority's certificate": {func(x *wire.Config) { x.TLS.RootCAs = testenv.NewAuthority(t).Pool() }, "it must be signed by the given authority"},
		"a certificate for servers": {func(x *wire.Config) {
			x.TLS.Certificates = []tls.Certificate{c.authority.ServerOnly("127.0.0.1")}
		}, "for use by servers and clients"},
	} {
		t.Run(name, func(t *testing.T) {
			config := c.config(c.members[0])
			test.change(&config)
			_, err := wire.New(config)
			require.ErrorContains(t, err, test.want)
		})
	}
}

// term has the hello say something more.
func term(t wire.Term) func(*wire.Config) {
	return func(x *wire.Config) { x.Protocol.Terms = append(x.Protocol.Terms, t) }
}

func TestCloseWaitsForWhatIsDelivered(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	config := c.config(c.members[0])
	config.MaxWait = time.Minute
	n, err := wire.New(config)
	require.NoError(t, err)
	begun, end, closed := make(chan struct{}), make(chan struct{}), make(chan struct{})
	require.NoError(t, n.Listen(func(string, []byte) error { close(begun); <-end; return nil }))
	n.Send(c.members[0], []byte("x"))
	<-begun
	go func() {
		defer close(closed)
		_ = n.Close()
	}()
	select {
	case <-closed:
		t.Error("it did not wait")
	case <-time.After(100 * time.Millisecond):
	}
	close(end)
	<-closed
}

func TestMain(m *testing.M) { leak.Main(m) }

func TestLastWordsAreFlushed(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	const words = 200
	for range 5 {
		all := []*node{}
		for _, m := range c.members {
			config := c.config(m)
			config.MaxWait = time.Minute
			all = append(all, c.start(config))
		}
		all[0].delivers(all[1], "here")
		all[1].delivers(all[0], "here")
		for i := range words {
			all[i%2].Send(all[1-i%2].id, fmt.Appendf(nil, "last %d", i))
		}
		all[0].Flush(patience)
		require.NoError(t, all[0].Close())
		last := fmt.Sprintf("%s: last %d", all[0].id, words-2)
		require.Eventually(t, func() bool { return all[1].has(last) }, patience, time.Millisecond, "%s", all[1].logged())
		begin := time.Now()
		all[1].Send(all[0].id, []byte("is anybody there?"))
		all[1].Flush(patience)
		require.Less(t, time.Since(begin), patience, "it waits for nobody that is not connected")
		require.NoError(t, all[1].Close())
	}
}
