package testenv_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv"
)

// dialVariable tells a copy of this test binary whom to connect with its input
// and output: network and address.
const dialVariable = "TESTENV_TEST_DIAL"

// TestMain lets a copy of this test binary be a program that runs on a host.
func TestMain(m *testing.M) {
	if to := os.Getenv(dialVariable); to != "" {
		os.Exit(connect(strings.Fields(to)))
	}
	os.Exit(m.Run())
}

func connect(to []string) int {
	conn, err := net.DialTimeout(to[0], to[1], 10*time.Second)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	go func() {
		io.Copy(os.Stdout, conn)
		os.Exit(0)
	}()
	// Line by line, so that each is a packet.
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		if _, err := conn.Write([]byte(lines.Text() + "\r\n")); err != nil {
			return 1
		}
	}
	return 0
}

// A remote is a connection from a host.
type remote struct {
	*testing.T
	in  io.Writer
	out *os.File
}

// from connects a host with an address.
func from(t *testing.T, h *testenv.Host, network, addr string) remote {
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), dialVariable+"="+network+" "+addr)
	cmd.Stderr = os.Stderr
	h.Command(cmd)
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { cmd.Wait() })
	return remote{t, in, out.(*os.File)}
}

func (r remote) say(line string) {
	r.Helper()
	_, err := io.WriteString(r.in, line+"\n")
	require.NoError(r, err)
}

func (r remote) hear(want string) {
	r.Helper()
	require.NoError(r, r.out.SetReadDeadline(time.Now().Add(20*time.Second)))
	got := make([]byte, len(want))
	_, err := io.ReadFull(r.out, got)
	require.NoError(r, err)
	require.Equal(r, want, string(got))
}

func (r remote) hearNothing() {
	r.Helper()
	require.NoError(r, r.out.SetReadDeadline(time.Now().Add(silence)))
	_, err := r.out.Read(make([]byte, 1))
	require.ErrorIs(r, err, os.ErrDeadlineExceeded)
}

func TestHostsReachThisMachineAt127001(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedis(t)
	n := testenv.NewNetwork(t)
	for range 2 {
		r := from(t, n.Host(), "tcp", server.Addr())
		r.say("PING")
		r.hear("+PONG\r\n")
	}
	r := from(t, n.Host(), "tcp", testenv.NewProxy(t, server.Addr()).Addr())
	r.say("PING")
	r.hear("+PONG\r\n")
}

func TestHostsOfDifferentNetworksAreApart(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedis(t)
	a, b := testenv.NewNetwork(t).Host(), testenv.NewNetwork(t).Host()
	require.NotEqual(t, a.Addr(), b.Addr())
	a.Cut()
	r := from(t, b, "tcp", server.Addr())
	r.say("PING")
	r.hear("+PONG\r\n")
}

func TestCutHostLosesWhatTheCutSaysUntilItIsHealed(t *testing.T) {
	for _, test := range []struct {
		name    string
		cut     func(*testenv.Host)
		arrives bool // whether a request does
	}{
		{"both ways", (*testenv.Host).Cut, false},
		{"requests", (*testenv.Host).CutRequests, false},
		{"replies", (*testenv.Host).CutReplies, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server := testenv.StartRedis(t)
			client := redisClient(t, server.Addr())
			n := testenv.NewNetwork(t)
			host, other := n.Host(), n.Host()
			r, bystander := from(t, host, "tcp", server.Addr()), from(t, other, "tcp", server.Addr())
			r.say("INCR n")
			r.hear(":1\r\n")

			test.cut(host)
			other.Loss(0)
			r.say("INCR n")
			r.hearNothing()
			want := "1"
			if test.arrives {
				want = "2"
			}
			require.Eventually(t, func() bool { return client.Get(within(t), "n").Val() == want }, time.Minute, 10*time.Millisecond)
			bystander.say("PING")
			bystander.hear("+PONG\r\n")

			host.Heal()
			r.hear(":2\r\n") // The kernel sends again what was lost.
			require.Equal(t, "2", client.Get(within(t), "n").Val())
		})
	}
}

func TestUnaskedRepliesPassWhileRequestsAreCut(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedis(t)
	h := testenv.NewNetwork(t).Host()
	r := from(t, h, "tcp", server.Addr())
	r.say("SUBSCRIBE news")
	r.hear("*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n")
	h.CutRequests()
	require.NoError(t, redisClient(t, server.Addr()).Publish(within(t), "news", "unasked").Err())
	r.hear("*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$7\r\nunasked\r\n")
}

func TestLossLosesThatPartOfThePackets(t *testing.T) {
	t.Parallel()
	const sent = 1000
	listener, err := net.ListenPacket("udp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	h := testenv.NewNetwork(t).Host()
	r := from(t, h, "udp4", listener.LocalAddr().String())
	h.Loss(30)
	got := make(chan int)
	go func() {
		n, buf := 0, make([]byte, 64)
		for {
			k, _, err := listener.ReadFrom(buf)
			if err != nil || string(buf[:k]) == "end\r\n" {
				break
			}
			n++
		}
		got <- n
	}()
	for range sent {
		r.say("packet")
		time.Sleep(100 * time.Microsecond) // or the socket's buffer overflows
	}
	for {
		r.say("end")
		select {
		case n := <-got:
			// Four standard deviations are 58.
			require.InDelta(t, 0.7*sent, n, 80)
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}
