package wire_test

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/internal/wire"
)

// spoken is what somebody else speaks.
func (c cluster) spoken(change func(*wire.Protocol)) wire.Protocol {
	p := c.protocol()
	change(&p)
	return p
}

// A visitor connects with a node and says what it likes.
type visitor struct {
	*testing.T
	*tls.Conn
}

// visit connects with a member. The handshake may fail later: of a client it ends
// before the server has looked at its certificate.
func (c cluster) visit(member string, config *tls.Config) visitor {
	c.Helper()
	plain, err := net.DialTimeout("tcp", member, patience)
	require.NoError(c, err)
	c.Cleanup(func() { plain.Close() })
	require.NoError(c, plain.SetDeadline(time.Now().Add(patience)))
	config = config.Clone()
	config.ServerName = "127.0.0.1"
	return visitor{c.T, tls.Client(plain, config)}
}

func (v visitor) say(b []byte) {
	v.Helper()
	_, err := v.Write(b)
	require.NoError(v, err)
}

// refused reads the reason for which the visitor is sent away.
func (v visitor) refused() string {
	v.Helper()
	k, body, err := wire.ReadFrame(v, wire.MaxHello)
	require.NoError(v, err)
	require.Equal(v, wire.KindRefusal, k)
	v.closed()
	return string(body)
}

// closed waits for the end of the connection.
func (v visitor) closed() {
	v.Helper()
	_, err := io.Copy(io.Discard, v)
	var timeout net.Error
	require.False(v, err != nil && errors.As(err, &timeout) && timeout.Timeout(), "the connection stays")
}

// welcome says hello and hears one.
func (v visitor) welcome(hello []byte) {
	v.Helper()
	v.say(wire.Frame(wire.KindHello, hello))
	k, body, err := wire.ReadFrame(v, wire.MaxHello)
	require.NoError(v, err)
	require.Equal(v, wire.KindHello, k, "%q", body)
}

// lives has the visitor say that it is alive until its connection or the test ends.
func (v visitor) lives() {
	stop := make(chan struct{})
	var alive sync.WaitGroup
	v.Cleanup(func() {
		close(stop)
		alive.Wait()
	})
	alive.Go(func() {
		for v.SetDeadline(time.Now().Add(patience)) == nil {
			if _, err := v.Write(wire.Frame(wire.KindAlive, nil)); err != nil {
				return
			}
			select {
			case <-stop:
				return
			case <-time.After(250 * time.Millisecond):
			}
		}
	})
}

func TestWhoDoesNotBelongHereIsRefusedAndToldWhy(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	node := c.visitable(c.config(c.members[1]))
	first, self, last := c.members[0], c.members[1], c.members[2]
	ours := c.protocol()
	changed := func(change func(*wire.Protocol)) []byte { return c.spoken(change).Hello(first, 1) }
	for name, test := range map[string]struct {
		hello []byte
		want  string
	}{
		"another protocol": {changed(func(p *wire.Protocol) { p.Name = "paxos" }), `it speaks the protocol "paxos", and the other "echo"`},
		"a longer name":    {changed(func(p *wire.Protocol) { p.Name = "echoes" }), `it speaks the protocol "echoes", and the other "echo"`},
		"another cluster":  {changed(func(p *wire.Protocol) { p.Terms[0] = wire.Text("", "b") }), `its cluster is "b", and the other's "test"`},
		"other members":    {changed(func(p *wire.Protocol) { p.Terms[1] = wire.List("", c.members[:2]) }), `its members are "` + first + "," + self + `", and the other's "` + first + "," + self + "," + last + `": they must be the same`},
		"no such members":  {changed(func(p *wire.Protocol) { p.Terms[1] = wire.List("", []string{strings.Join(c.members, ",")}) }), "they must be the same"},
		"other TTL":        {changed(func(p *wire.Protocol) { p.Terms[2] = wire.Span("", time.Hour) }), "its longest TTL is 1h0m0s, and the other's 1m0s"},
		"other drift":      {changed(func(p *wire.Protocol) { p.Terms[3] = wire.Number("", 1, "") }), "its drift is 1‰, and the other's 2‰"},
		"no member":        {ours.Hello("127.0.0.1:1", 1), `it says that it is "127.0.0.1:1", which is no member: the list of the other has "` + strings.Join(c.members, ",")},
		"our own id":       {ours.Hello(self, 1), "and so does this process: it is started twice"},
		"whom we call":     {ours.Hello(last, 1), "it is this side that calls"},
		"the future":       {changed(func(p *wire.Protocol) { p.Version = 2 }), "it speaks version 2 of the protocol, and this one version 1"},
		"the past":         {changed(func(p *wire.Protocol) { p.Version = 0 }), "it speaks version 0 of the protocol"},
		"cut short":        {ours.Hello(first, 1)[:30], "its hello is malformed"},
		"something after":  {append(ours.Hello(first, 1), 0), "its hello is malformed"},
		"garbage":          {[]byte("GET / HTTP/1.1\r\n\r\n"), "it does not speak this protocol"},
		"nothing":          {nil, "it does not speak this protocol"},
	} {
		t.Run(name, func(t *testing.T) {
			v := c.visit(self, c.authority.Config("127.0.0.1"))
			v.say(wire.Frame(wire.KindHello, test.hello))
			require.Contains(t, v.refused(), test.want)
		})
	}
	t.Run("another host's certificate", func(t *testing.T) {
		v := c.visit(self, c.authority.Config("127.0.0.2"))
		v.say(wire.Frame(wire.KindHello, ours.Hello(first, 1)))
		require.Contains(t, v.refused(), "and its certificate does not")
	})
	t.Run("a message first", func(t *testing.T) {
		v := c.visit(self, c.authority.Config("127.0.0.1"))
		v.say(wire.Frame(wire.KindMessage, []byte("intruder")))
		require.Contains(t, v.refused(), "it does not speak this protocol")
	})
	t.Run("an endless hello", func(t *testing.T) {
		v := c.visit(self, c.authority.Config("127.0.0.1"))
		v.say([]byte{0xff, 0xff, 0xff, 0xff})
		require.Contains(t, v.refused(), "a frame of 4294967295 bytes, where 1 to 16385 are right")
	})
	require.Empty(t, node.received)
	node.complains("connection refused")
}

func TestWhoHasNoRightCertificateIsRefusedBeforeItIsHeard(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	called := c.start(c.config(c.members[1]))
	stranger := testenv.NewAuthority(t)
	for name, test := range map[string]struct {
		config *tls.Config
		want   string
	}{
		"none":                  {&tls.Config{}, "certificate required"},
		"of another authority":  {&tls.Config{Certificates: []tls.Certificate{stranger.Certificate("127.0.0.1")}}, "unknown certificate authority"},
		"for servers only":      {&tls.Config{Certificates: []tls.Certificate{c.authority.ServerOnly("127.0.0.1")}}, "bad certificate"},
		"over an older version": {&tls.Config{Certificates: []tls.Certificate{c.authority.Certificate("127.0.0.1")}, MaxVersion: tls.VersionTLS12}, "protocol version not supported"},
	} {
		t.Run(name, func(t *testing.T) {
			test.config.RootCAs = c.authority.Pool()
			// A client shows what it has, whomever the server trusts.
			if len(test.config.Certificates) > 0 {
				pair := test.config.Certificates[0]
				test.config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
			}
			v := c.visit(called.id, test.config)
			err := v.Handshake()
			if err == nil {
				_, err = v.Read(make([]byte, 1))
			}
			require.ErrorContains(t, err, test.want)
		})
	}
	require.Empty(t, called.received)
}

func TestAMemberCallsNobodyWhoseCertificateIsWrong(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	caller := c.start(c.config(c.members[0]))
	for name, test := range map[string]struct {
		config *tls.Config
		want   string
	}{
		"another authority": {testenv.NewAuthority(t).Config("127.0.0.1"), "certificate signed by unknown authority"},
		"another host":      {c.authority.Config("127.0.0.2"), "certificate is valid for 127.0.0.2, not 127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			listener, err := tls.Listen("tcp", c.members[1], test.config)
			require.NoError(t, err)
			defer listener.Close()
			heard := make(chan error, 1)
			go func() {
				conn, err := listener.Accept()
				if err == nil {
					defer conn.Close()
					_, err = conn.Read(make([]byte, 1))
				}
				heard <- err
			}()
			require.Error(t, <-heard, "it says nothing to such a peer")
			require.Eventually(t, func() bool {
				_, trouble := caller.connected(c.members[1])
				return trouble != nil && strings.Contains(trouble.Error(), test.want)
			}, patience, 10*time.Millisecond)
		})
	}
}

// answer lets somebody answer at an address who says this hello. It returns the reasons for
// which the callers leave.
func (c cluster) answer(addr string, hello []byte) <-chan string {
	c.Helper()
	reasons := make(chan string, 1000)
	config := c.authority.Config("127.0.0.1")
	listener, err := tls.Listen("tcp", addr, config)
	require.NoError(c, err)
	done := make(chan struct{})
	c.Cleanup(func() { listener.Close(); <-done })
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = conn.SetDeadline(time.Now().Add(patience))
			if _, _, err = wire.ReadFrame(conn, wire.MaxHello); err == nil {
				_, err = conn.Write(wire.Frame(wire.KindHello, hello))
			}
			for err == nil { // until it is left
				var k any
				var body []byte
				if k, body, err = wire.ReadFrame(conn, wire.MaxHello); k == wire.KindRefusal {
					reasons <- string(body)
				}
			}
			conn.Close()
		}
	}()
	return reasons
}

func TestAMemberLeavesWhomItShouldNotHaveReached(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		at    int
		hello func(c cluster) []byte
		want  string
	}{
		"another cluster": {1, func(c cluster) []byte {
			return c.spoken(func(p *wire.Protocol) { p.Terms[0] = wire.Text("", "b") }).Hello(c.members[1], 1)
		}, "its cluster is"},
		"another member": {1, func(c cluster) []byte { return c.protocol().Hello(c.members[0], 1) }, "its address leads elsewhere"},
		"a client":       {1, func(c cluster) []byte { return c.protocol().Hello("", 1) }, "its address leads elsewhere"},
		"the future": {1, func(c cluster) []byte {
			return c.spoken(func(p *wire.Protocol) { p.Version = 2 }).Hello(c.members[1], 1)
		}, "it speaks version 2"},
		"another one as itself": {0, func(c cluster) []byte { return c.protocol().Hello(c.members[0], 1) }, "it is started twice, and this one keeps out"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, 2)
			reasons := c.answer(c.members[test.at], test.hello(c))
			config := c.config(c.members[0])
			config.Listen = testenv.FreeAddr(t)
			if test.at > 0 {
				config.Listen = ""
			}
			c.start(config).complains(test.want)
			select {
			case reason := <-reasons:
				require.Contains(t, reason, test.want)
			case <-time.After(patience):
				t.Fatal("it leaves without a reason")
			}
		})
	}
}

func TestWhoHasNotMetItselfLetsNobodyIn(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	c.start(c.config(c.members[1]))
	config := c.config(c.members[1])
	config.Listen = testenv.FreeAddr(t)
	second := c.start(config)
	v := c.visit(config.Listen, c.authority.Config("127.0.0.1"))
	v.say(wire.Frame(wire.KindHello, c.protocol().Hello(c.members[0], 1)))
	require.Contains(t, v.refused(), "this member has not yet reached itself at its own address")
	require.Empty(t, second.received)
}

// visitable starts a node, and waits until it has met itself: before that, it lets nobody in.
func (c cluster) visitable(config wire.Config) *node {
	c.Helper()
	n := c.start(config)
	require.Eventually(c, func() bool { ok, _ := n.connected(n.id); return ok }, patience, time.Millisecond)
	return n
}

// visitAs is a visitor that has been let in as the first member.
func (c cluster) visitAs(to string, incarnation uint64) visitor {
	c.Helper()
	v := c.visit(to, c.authority.Config("127.0.0.1"))
	v.welcome(c.protocol().Hello(c.members[0], incarnation))
	return v
}

func TestAPeerThatSpeaksWrongIsCutOffAndNothingElseHappens(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	node, other := c.visitable(c.config(c.members[1])), c.start(c.config(c.members[2]))
	for name, test := range map[string]struct {
		say  []byte
		want string
	}{
		"a frame too large":   {[]byte{0x00, 0x20, 0x00, 0x00, byte(wire.KindMessage)}, "a frame of 2097152 bytes"},
		"an empty frame":      {[]byte{0, 0, 0, 0}, "a frame of 0 bytes"},
		"an unknown kind":     {wire.Frame(99, nil), "a frame of kind 99 in the middle"},
		"a second hello":      {wire.Frame(wire.KindHello, nil), "a frame of kind 1 in the middle"},
		"no message":          {wire.Frame(wire.KindMessage, nil), "malformed"},
		"a malformed message": {wire.Frame(wire.KindMessage, []byte("!")), "malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			v := c.visitAs(node.id, 1)
			v.say(test.say)
			v.closed()
			node.troubled(c.members[0], test.want)
		})
	}
	node.delivers(other, "still")
}

func TestASilentMemberSaysThatItIsAlive(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	node := c.visitable(c.config(c.members[1]))
	k, body, err := wire.ReadFrame(c.visitAs(node.id, 1), wire.MaxHello)
	require.NoError(t, err)
	require.Equal(t, wire.KindAlive, k)
	require.Empty(t, body)
}

func TestThereIsRoomForSoManyClientsAndForAnotherWhenOneHasGone(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 1)
	node := c.visitable(c.config(c.members[0]))
	hello := func(i int) []byte { return c.protocol().Hello("", uint64(i)) }
	config := c.authority.Config("client")
	first := c.visit(node.id, config)
	first.welcome(hello(0))
	first.lives()
	for i := 1; i < maxClients; i++ {
		v := c.visit(node.id, config)
		v.welcome(hello(i))
		v.lives()
	}
	late := c.visit(node.id, config)
	late.say(wire.Frame(wire.KindHello, hello(99)))
	require.Contains(t, late.refused(), "64 clients are connected already")
	first.Close()
	require.Eventually(t, func() bool {
		v := c.visit(node.id, config)
		v.say(wire.Frame(wire.KindHello, hello(100)))
		k, _, err := wire.ReadFrame(v, wire.MaxHello)
		return err == nil && k == wire.KindHello
	}, patience, 50*time.Millisecond)
}

func TestASlowLorisIsShutOut(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	node := c.visitable(c.config(c.members[1]))
	silent, err := net.Dial("tcp", node.id)
	require.NoError(t, err)
	defer silent.Close()
	shy := c.visit(node.id, c.authority.Config("127.0.0.1"))
	require.NoError(t, shy.Handshake())
	slow := c.visitAs(node.id, 1)
	slow.say(wire.Frame(wire.KindMessage, make([]byte, 100))[:50])
	other := c.start(c.config(c.members[2]))
	node.delivers(other, "meanwhile")
	require.NoError(t, silent.SetDeadline(time.Now().Add(patience)))
	_, err = silent.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
	shy.closed()
	slow.closed()
}

func TestAPeerThatReadsNothingIsDroppedAndHoldsUpNobody(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	node, other := c.visitable(c.config(c.members[1])), c.start(c.config(c.members[2]))
	v := c.visitAs(node.id, 1)
	v.lives() // and only reads nothing
	node.delivers(other, "before")
	large := make([]byte, 100_000)
	begin := time.Now()
	for range 1000 { // 100 MB, of which at most 4 wait
		node.Send(c.members[0], large)
	}
	require.Less(t, time.Since(begin), patience, "a send does not wait")
	node.complains("messages dropped")
	node.delivers(other, "meanwhile")
	require.Eventually(t, func() bool {
		node.Send(c.members[0], large) // what waited may have become too old before it filled the connection
		ok, _ := node.connected(c.members[0])
		return !ok
	}, patience, 10*time.Millisecond)
}

func TestAnotherIncarnationWaitsForTheEndOfTheConnectedOne(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	node := c.visitable(c.config(c.members[1]))
	old := c.visitAs(node.id, 1)
	old.lives()
	hello := func(incarnation uint64) []byte { return c.protocol().Hello(c.members[0], incarnation) }

	second := c.visit(node.id, c.authority.Config("127.0.0.1"))
	second.say(wire.Frame(wire.KindHello, hello(2)))
	require.Contains(t, second.refused(), "is connected already, as another process: is it started twice?")

	again := c.visitAs(node.id, 1) // the same process, which has lost its connection
	old.closed()
	again.Close()
	require.Eventually(t, func() bool { ok, _ := node.connected(c.members[0]); return !ok }, patience, time.Millisecond)
	c.visitAs(node.id, 2)
}

func TestAMemberCallsSeldomWhereItIsRefused(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 2)
	listener, err := net.Listen("tcp", c.members[1])
	require.NoError(t, err)
	calls := make(chan struct{}, 1000)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conn.Close()
			calls <- struct{}{}
		}
	}()
	begin := time.Now()
	node := c.start(c.config(c.members[0]))
	require.Eventually(t, func() bool { return len(calls) > 0 }, patience, time.Millisecond)
	time.Sleep(1500 * time.Millisecond)
	listener.Close()
	<-done
	require.LessOrEqual(t, len(calls), 7+int(time.Since(begin)/(250*time.Millisecond)), "pauses double from 50 ms to 500 ms, less or more by half")
	require.LessOrEqual(t, strings.Count(node.logged(), "\n"), 3)
}
