//go:build unix

package testenv_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/electkv/election/internal/testenv"
)

func TestResetHitsConnectionsThatExistAndNewOnesUntilHealed(t *testing.T) {
	t.Parallel()
	p := testenv.NewProxy(t, echoServer(t))
	old := dial(t, p.Addr())
	requireEcho(t, old)

	p.Reset()
	requireReset(t, old)
	requireNewReset(t, p.Addr())

	p.Heal()
	requireEcho(t, dial(t, p.Addr()))
}

func TestHalfCloseEndsTheRepliesAndLetsRequestsPass(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedis(t)
	p := testenv.NewProxy(t, server.Addr())
	old := dial(t, p.Addr())
	ping(t, old)
	p.HalfClose()
	for key, conn := range map[string]net.Conn{"old": old, "new": dial(t, p.Addr())} {
		requireEnd(t, conn)
		_, err := io.WriteString(conn, "SET "+key+" arrived\r\n")
		require.NoError(t, err)
		require.Eventually(t, func() bool {
			got, err := getRedis(within(t), server.Addr(), key)
			return err == nil && got == "arrived"
		}, 10*time.Second, 10*time.Millisecond)
	}
	p.Heal()
	ping(t, dial(t, p.Addr()))
}

func TestTrickleSlicesAndSlows(t *testing.T) {
	t.Parallel()
	p := testenv.NewProxy(t, echoServer(t))
	conn := dial(t, p.Addr())
	p.Trickle(2, 50*time.Millisecond)
	start := time.Now()
	_, err := io.WriteString(conn, "0123456789")
	require.NoError(t, err)
	piece := make([]byte, 10)
	n, err := conn.Read(piece)
	require.NoError(t, err)
	require.Equal(t, "01", string(piece[:n]))
	requireRead(t, conn, "23456789")
	require.GreaterOrEqual(t, time.Since(start), 200*time.Millisecond)

	p.Trickle(1, time.Hour)
	conn = dial(t, p.Addr())
	_, err = io.WriteString(conn, "the rest")
	require.NoError(t, err)
	requireRead(t, conn, "t")
	p.Heal()
	requireRead(t, conn, "he rest")
}

func TestDelayedRepliesComeAfterTheServerCommitted(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedis(t)
	p := testenv.NewProxy(t, server.Addr())
	direct := redisClient(t, server.Addr())
	conn := dial(t, p.Addr())
	p.DelayReplies(time.Second)
	start := time.Now()
	_, err := io.WriteString(conn, "INCR n\r\n")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return direct.Get(within(t), "n").Val() == "1" }, 10*time.Second, time.Millisecond)
	requireRead(t, conn, ":1\r\n")
	require.GreaterOrEqual(t, time.Since(start), time.Second)
}

func TestDelayBetweenKeepsTheOrder(t *testing.T) {
	t.Parallel()
	p := testenv.NewProxy(t, echoServer(t))
	conn := dial(t, p.Addr())
	p.DelayBetween(10*time.Millisecond, 60*time.Millisecond)
	start := time.Now()
	for _, c := range "0123456789" {
		_, err := io.WriteString(conn, string(c))
		require.NoError(t, err)
		time.Sleep(2 * time.Millisecond) // so that the proxy reads it by itself
	}
	requireRead(t, conn, "0123456789")
	require.GreaterOrEqual(t, time.Since(start), 20*time.Millisecond)
}

func TestAHeldReplyIsKnownOfAndIsNotLost(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedis(t)
	p := testenv.NewProxy(t, server.Addr())
	conn := dial(t, p.Addr())
	ping(t, conn)

	p.HoldReplies()
	ctx, cancel := context.WithTimeout(t.Context(), silence)
	defer cancel()
	require.ErrorIs(t, p.AwaitHeld(ctx), context.DeadlineExceeded, "nobody asked for anything yet")
	_, err := io.WriteString(conn, "INCR n\r\n")
	require.NoError(t, err)
	require.NoError(t, p.AwaitHeld(within(t)))
	require.Equal(t, "1", redisClient(t, server.Addr()).Get(within(t), "n").Val())
	requireSilence(t, conn)

	p.Heal()
	requireRead(t, conn, ":1\r\n")
}

func TestOnRequestLosesTheReplyToOneRequest(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedis(t)
	p := testenv.NewProxy(t, server.Addr())
	direct, through := redisClient(t, server.Addr()), redisClient(t, p.Addr())
	p.OnRequest(func(request []byte) {
		if bytes.Contains(request, []byte("incr")) {
			p.DropReplies()
		}
	})
	require.NoError(t, through.Set(within(t), "n", 1, 0).Err())
	require.ErrorIs(t, through.Incr(within(t), "n").Err(), os.ErrDeadlineExceeded)
	require.Equal(t, "2", direct.Get(within(t), "n").Val())

	p.OnRequest(nil)
	p.Heal()
	require.Equal(t, int64(3), through.Incr(within(t), "n").Val())
}

func TestReplayedRequestReachesTheServerTwice(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedis(t)
	p := testenv.NewProxy(t, server.Addr())
	through := redisClient(t, p.Addr())
	p.Replay(func(request []byte) bool { return bytes.Contains(request, []byte("incr")) })
	require.Equal(t, int64(2), through.Incr(within(t), "n").Val(), "the answer to the second")
	require.Equal(t, "2", through.Get(within(t), "n").Val())
	p.Heal()
	require.Equal(t, int64(3), through.Incr(within(t), "n").Val())
}

func TestReplayedCheckAndSetFailsTheSecondTime(t *testing.T) {
	t.Parallel()
	p := testenv.NewProxy(t, testenv.Consul(t))
	client, err := newConsulClient(p.Addr())
	require.NoError(t, err)
	p.Replay(func(request []byte) bool { return bytes.Contains(request, []byte("cas=0")) })
	pair := &api.KVPair{Key: "testenv/replay", Value: []byte("v")}
	done, _, err := client.KV().CAS(pair, new(api.WriteOptions).WithContext(within(t)))
	require.NoError(t, err)
	require.False(t, done, "the first has created it")
	p.Heal()
	got, err := getConsul(within(t), p.Addr(), pair.Key)
	require.NoError(t, err)
	require.Equal(t, "v", got)
}

func TestAffectHitsSubscriptionsAlone(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedis(t)
	p := testenv.NewProxy(t, server.Addr())
	direct, through := redisClient(t, server.Addr()), redisClient(t, p.Addr())
	p.Affect(func(c testenv.Connection) bool { return bytes.Contains(c.Last, []byte("subscribe")) })
	p.DropReplies()
	require.NoError(t, through.Set(within(t), "k", "v", 0).Err())
	sub := through.Subscribe(within(t), "news")
	defer sub.Close()
	_, err := sub.ReceiveTimeout(within(t), silence)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	require.Equal(t, "v", through.Get(within(t), "k").Val())

	p.Affect(nil)
	p.Heal()
	_, err = sub.Receive(within(t))
	require.Error(t, err, "the confirmation was lost, so the connection is closed")
	require.NoError(t, sub.Subscribe(within(t), "news"))
	require.Eventually(t, func() bool {
		return direct.Publish(within(t), "news", "unasked").Val() == 1
	}, 10*time.Second, 10*time.Millisecond)
	requireMessage(t, sub, "unasked")
}

func TestAffectHitsConnectionsByTheirAge(t *testing.T) {
	t.Parallel()
	p := testenv.NewProxy(t, echoServer(t))
	old := dial(t, p.Addr())
	requireEcho(t, old)
	now := time.Now()
	p.Affect(func(c testenv.Connection) bool { return c.Opened.After(now) })
	p.BlackHole()
	requireSilence(t, dial(t, p.Addr()))
	requireEcho(t, old)

	p.Affect(func(c testenv.Connection) bool { return c.Opened.Before(now) })
	requireSilence(t, old)
	requireEcho(t, dial(t, p.Addr()))
}

func TestMutedStreamIsSilentWhileItsConnectionLives(t *testing.T) {
	t.Parallel()
	server := testenv.StartEtcd(t)
	p := testenv.NewProxy(t, server.Addr())
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{p.Addr()}, Logger: zap.NewNop()})
	require.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	watch := client.Watch(t.Context(), "watched", clientv3.WithCreatedNotify())
	require.True(t, (<-watch).Created)
	put := func(value string) {
		t.Helper()
		_, err := client.Put(within(t), "watched", value)
		require.NoError(t, err)
	}
	sees := func(value string) {
		t.Helper()
		select {
		case got := <-watch:
			require.Len(t, got.Events, 1)
			require.Equal(t, value, string(got.Events[0].Kv.Value))
		case <-within(t).Done():
			t.Fatal("no event")
		}
	}
	put("1")
	sees("1")

	p.MuteStreams(func(asked []byte) bool { return bytes.Contains(asked, []byte("watched")) })
	put("2")
	got, err := client.Get(within(t), "watched")
	require.NoError(t, err)
	require.Equal(t, "2", string(got.Kvs[0].Value))
	select {
	case got := <-watch:
		t.Fatalf("muted, and yet there is %v", got.Events)
	case <-time.After(silence):
	}

	p.Heal()
	sees("2") // on a new connection
	put("3")
	sees("3")
}

func requireMessage(t *testing.T, sub *redis.PubSub, want string) {
	t.Helper()
	got, err := sub.ReceiveMessage(within(t))
	require.NoError(t, err)
	require.Equal(t, want, got.Payload)
}

func requireReset(t *testing.T, conn net.Conn) {
	t.Helper()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(10*time.Second)))
	_, err := conn.Read(make([]byte, 1))
	require.ErrorIs(t, err, syscall.ECONNRESET)
}

// requireNewReset wants a new connection to be reset, be it that fast that the dialing
// tells of it.
func requireNewReset(t *testing.T, addr string) {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, 10*time.Second)
	if err != nil {
		require.ErrorIs(t, err, syscall.ECONNRESET)
		return
	}
	defer conn.Close()
	requireReset(t, conn)
}

func requireEnd(t *testing.T, conn net.Conn) {
	t.Helper()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(10*time.Second)))
	_, err := conn.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
}
