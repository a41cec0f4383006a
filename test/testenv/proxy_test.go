//go:build unix

package testenv_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/electkv/election/internal/testenv"
)

// silence is how long a test listens before it says that nothing comes.
const silence = 300 * time.Millisecond

func TestProxyForwardsBytesAndTheEndBothWays(t *testing.T) {
	p := testenv.NewProxy(t, echoServer(t))
	conn := dial(t, p.Addr())
	sent := randomBytes(8 << 20)
	go func() {
		conn.Write(sent)
		conn.(*net.TCPConn).CloseWrite()
	}()
	got, err := io.ReadAll(conn)
	require.NoError(t, err)
	require.True(t, bytes.Equal(sent, got), "%d bytes sent, %d came back", len(sent), len(got))
}

func TestCutClosesConnectionsAndRefusesNewOnesUntilHealed(t *testing.T) {
	p := testenv.NewProxy(t, echoServer(t))
	conn := dial(t, p.Addr())
	requireEcho(t, conn)

	p.Cut()
	p.Cut()
	requireClosed(t, conn)
	requireRefused(t, p.Addr())

	p.Heal()
	requireEcho(t, dial(t, p.Addr()))
}

func TestCutClosesAConnectionThatIsBeingAccepted(t *testing.T) {
	p := testenv.NewProxy(t, echoServer(t))
	for range 100 {
		dialing, conns := make(chan struct{}), make(chan net.Conn, 10_000)
		go func() {
			defer close(conns)
			for n := range cap(conns) {
				conn, err := net.Dial("tcp", p.Addr())
				if err != nil {
					return
				}
				conns <- conn
				if n == 2 {
					close(dialing)
				}
			}
		}()
		<-dialing
		p.Cut()
		for conn := range conns {
			requireClosed(t, conn)
			conn.Close()
		}
		p.Heal()
	}
}

func TestBlackHoleAcceptsAndForwardsNothing(t *testing.T) {
	p := testenv.NewProxy(t, echoServer(t))
	old, idle := dial(t, p.Addr()), dial(t, p.Addr())
	requireEcho(t, old)
	requireEcho(t, idle)

	p.BlackHole()
	fresh := dial(t, p.Addr())
	requireSilence(t, old, fresh)

	p.Heal()
	requireClosed(t, old)
	requireClosed(t, fresh)
	requireEcho(t, idle)
	requireEcho(t, dial(t, p.Addr()))
}

func TestBlackHoleHidesThatTheServerIsGone(t *testing.T) {
	server := testenv.StartRedis(t)
	p := testenv.NewProxy(t, server.Addr())
	old := dial(t, p.Addr())
	ping(t, old)

	p.BlackHole()
	server.Kill()
	requireSilence(t, old, dial(t, p.Addr()))

	p.Heal()
	requireClosed(t, old)
	requireClosed(t, dial(t, p.Addr()))
	server.Restart()
	ping(t, dial(t, p.Addr()))
}

func TestDroppedReplyComesAfterTheServerCommitted(t *testing.T) {
	server := testenv.StartRedis(t)
	p := testenv.NewProxy(t, server.Addr())
	direct, through := redisClient(t, server.Addr()), redisClient(t, p.Addr())
	require.NoError(t, through.Incr(within(t), "n").Err())

	p.DropReplies()
	require.ErrorIs(t, through.Incr(within(t), "n").Err(), os.ErrDeadlineExceeded)
	require.Equal(t, "2", direct.Get(within(t), "n").Val())

	p.Heal()
	require.Equal(t, int64(3), through.Incr(within(t), "n").Val())
}

func TestDroppedRequestDoesNotReachTheServer(t *testing.T) {
	server := testenv.StartRedis(t)
	p := testenv.NewProxy(t, server.Addr())
	direct, through := redisClient(t, server.Addr()), redisClient(t, p.Addr())
	require.NoError(t, through.Incr(within(t), "n").Err())
	sub := through.Subscribe(within(t), "news")
	defer sub.Close()
	_, err := sub.Receive(within(t))
	require.NoError(t, err)

	p.DropRequests()
	require.ErrorIs(t, through.Incr(within(t), "n").Err(), os.ErrDeadlineExceeded)
	require.Equal(t, "1", direct.Get(within(t), "n").Val())
	require.NoError(t, direct.Publish(within(t), "news", "unasked").Err())
	got, err := sub.ReceiveMessage(within(t))
	require.NoError(t, err)
	require.Equal(t, "unasked", got.Payload)

	p.Heal()
	require.Equal(t, int64(2), through.Incr(within(t), "n").Val())
}

func TestLostBytesAreNotFollowedByOthers(t *testing.T) {
	for name, next := range map[string]func(*testenv.Proxy){
		"heal":         (*testenv.Proxy).Heal,
		"drop replies": (*testenv.Proxy).DropReplies,
		"delay":        func(p *testenv.Proxy) { p.Delay(time.Millisecond) },
		"cut":          (*testenv.Proxy).Cut,
	} {
		t.Run(name, func(t *testing.T) {
			p := testenv.NewProxy(t, echoServer(t))
			conn := dial(t, p.Addr())
			requireEcho(t, conn)
			p.DropRequests()
			requireSilence(t, conn)
			next(p)
			requireClosed(t, conn)
		})
	}
}

func TestDelayHoldsBackBothWaysUntilHealed(t *testing.T) {
	p := testenv.NewProxy(t, echoServer(t))
	conn := dial(t, p.Addr())

	p.Delay(150 * time.Millisecond)
	start := time.Now()
	requireEcho(t, conn)
	require.GreaterOrEqual(t, time.Since(start), 300*time.Millisecond)

	p.Delay(time.Hour)
	_, err := conn.Write([]byte("late"))
	require.NoError(t, err)
	time.Sleep(silence)
	p.Heal()
	requireRead(t, conn, "late")
}

func TestDelayIsNotAddedUpOverPiecesOfAStream(t *testing.T) {
	p := testenv.NewProxy(t, echoServer(t))
	conn := dial(t, p.Addr())
	p.Delay(500 * time.Millisecond)
	start := time.Now()
	for range 20 {
		_, err := conn.Write([]byte("x"))
		require.NoError(t, err)
		time.Sleep(5 * time.Millisecond)
	}
	requireRead(t, conn, "xxxxxxxxxxxxxxxxxxxx")
	require.Less(t, time.Since(start), 8*time.Second)
}

func TestProxyLeavesNothingBehind(t *testing.T) {
	t.Cleanup(func() { goleak.VerifyNone(t) })
	addr := echoServer(t)
	p := testenv.NewProxy(t, addr)
	faults := []func(){p.Cut, p.BlackHole, p.DropReplies, p.DropRequests, p.Heal, p.Reset, p.HalfClose,
		func() { p.Delay(time.Minute) }, func() { p.Trickle(1, time.Minute) },
		func() { p.Replay(func([]byte) bool { return true }) }}

	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 30 {
				conn, err := net.Dial("tcp", p.Addr())
				if err != nil {
					continue
				}
				conn.Write([]byte("x"))
				conn.SetReadDeadline(time.Now().Add(5 * time.Millisecond))
				conn.Read(make([]byte, 1))
				conn.Close()
			}
		})
	}
	for range 100 {
		faults[rand.IntN(len(faults))]()
		time.Sleep(time.Millisecond)
	}
	wg.Wait()
	p.Delay(time.Minute)
	conn := dial(t, p.Addr())
	_, err := conn.Write([]byte("never forwarded"))
	require.NoError(t, err)
}

// echoServer sends everything back, until the test ends.
func echoServer(t *testing.T) string {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				io.Copy(conn, conn)
			})
		}
	})
	t.Cleanup(func() {
		listener.Close()
		wg.Wait()
	})
	return listener.Addr().String()
}

func requireEcho(t *testing.T, conn net.Conn) {
	t.Helper()
	_, err := conn.Write([]byte("hello"))
	require.NoError(t, err)
	requireRead(t, conn, "hello")
}

func ping(t *testing.T, conn net.Conn) {
	t.Helper()
	_, err := conn.Write([]byte("PING\r\n"))
	require.NoError(t, err)
	requireRead(t, conn, "+PONG\r\n")
}

func requireRead(t *testing.T, conn net.Conn, want string) {
	t.Helper()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(10*time.Second)))
	got := make([]byte, len(want))
	_, err := io.ReadFull(conn, got)
	require.NoError(t, err)
	require.Equal(t, want, string(got))
}

// requireSilence asks on each connection, and hears neither an answer nor the
// end.
func requireSilence(t *testing.T, conns ...net.Conn) {
	t.Helper()
	for _, conn := range conns {
		_, err := conn.Write([]byte("anybody there?"))
		require.NoError(t, err)
		require.NoError(t, conn.SetReadDeadline(time.Now().Add(silence)))
		_, err = conn.Read(make([]byte, 1))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	}
}

// redisClient asks once, and gives up soon.
func redisClient(t *testing.T, addr string) *redis.Client {
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, ReadTimeout: time.Second})
	t.Cleanup(func() { client.Close() })
	return client
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	return b
}
