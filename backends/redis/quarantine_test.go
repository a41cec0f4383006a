package rediskv_test

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election/backends/redis"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

const quarantine = 1500 * time.Millisecond

// closed returns how long a safe that looks vacant refuses a create, from the
// first look on.
func closed(b *bench, store *rediskv.Store, name string) time.Duration {
	b.Helper()
	begun := time.Now()
	_, err := store.Get(b.ctx, name)
	require.ErrorIs(b, err, kv.ErrVacant)
	for {
		_, err := store.Create(b.ctx, name, b.signed(time.Hour))
		if err == nil {
			return time.Since(begun)
		}
		require.ErrorIs(b, err, kv.ErrHeld)
		_, err = store.Get(b.ctx, name)
		require.ErrorIs(b, err, kv.ErrVacant, "a refused create leaves no record")
		time.Sleep(20 * time.Millisecond)
	}
}

func TestAServerThatForgotARecordElectsNobodyUntilTheQuarantineIsOver(t *testing.T) {
	t.Parallel() // it mostly waits
	server := testenv.StartRedis(t, "--appendonly", "no")
	b := newBench(t, server.Addr())
	careful := rediskv.New(dial(t, server.Addr()), &rediskv.Options{Quarantine: quarantine})

	name := b.name()
	require.GreaterOrEqual(t, closed(b, careful, name), quarantine, "nobody knows what the server knew before")
	rec := b.get(name)
	require.NoError(t, careful.Delete(b.ctx, name, rec))
	_, err := careful.Create(b.ctx, name, b.signed(time.Hour))
	require.NoError(t, err, "the server is known by now")

	server.Restart()
	require.GreaterOrEqual(t, closed(b, careful, name), quarantine)

	server.Restart()
	b.create(name, time.Hour) // without a quarantine there would be two owners now
}

func TestARestartThatForgetsNothingIsNoHindranceToTheOwner(t *testing.T) {
	t.Parallel()
	server := testenv.StartRedis(t)
	b := newBench(t, server.Addr())
	careful := rediskv.New(dial(t, server.Addr()), &rediskv.Options{Quarantine: quarantine})
	name := b.name()
	closed(b, careful, name)
	rec := b.get(name)
	server.Restart()
	_, err := careful.Refresh(b.ctx, name, rec)
	require.NoError(t, err)

	// The quarantine runs from the first look, not from the first create.
	require.Equal(t, rec, func() kv.Record { rec, _ := careful.Get(b.ctx, name); return rec }())
	time.Sleep(quarantine)
	require.NoError(t, careful.Delete(b.ctx, name, rec))
	_, err = careful.Create(b.ctx, name, b.signed(time.Hour))
	require.NoError(t, err)
}

func TestAPromotedReplicaElectsNobodyUntilTheQuarantineIsOver(t *testing.T) {
	t.Parallel()
	nodes := testenv.StartRedisSentinel(t, 1)
	nodes.Patience(time.Minute)
	client := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: testenv.RedisPrimaryName, SentinelAddrs: nodes.SentinelAddrs(), ContextTimeoutEnabled: true,
	})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	b := newBench(t, nodes.Primary().Addr())
	careful := rediskv.New(client, &rediskv.Options{Quarantine: quarantine})

	name := b.name()
	closed(b, careful, name)
	require.NoError(t, careful.Delete(b.ctx, name, b.get(name)))
	nodes.AwaitInStep() // the replica knows the old primary's identity
	nodes.CutReplication()
	lost, err := careful.Create(b.ctx, name, b.signed(time.Hour))
	require.NoError(t, err)
	nodes.Patience(time.Second)
	nodes.Primary().Kill()
	b.other = b.client(&redis.Options{Addr: nodes.Primary().Addr()})

	var found time.Time // the new primary, which then knows that it is new
	for !errors.Is(err, kv.ErrStale) {
		require.NoError(t, b.ctx.Err())
		time.Sleep(50 * time.Millisecond)
		found = time.Now()
		_, err = careful.Refresh(b.ctx, name, lost)
	}
	closed(b, careful, name)
	require.GreaterOrEqual(t, time.Since(found), quarantine)
}

// Its process is the same all the time, and so is what it knows of itself.
func TestAPrimaryThatWasAReplicaMeanwhileElectsNobodyUntilTheQuarantineIsOver(t *testing.T) {
	t.Parallel()
	primary, other := testenv.StartRedis(t), testenv.StartRedis(t)
	b, o := newBench(t, primary.Addr()), newBench(t, other.Addr())
	careful := rediskv.New(dial(t, primary.Addr()), &rediskv.Options{Quarantine: quarantine})
	name := b.name()
	o.follow(b)
	closed(b, careful, name)
	require.NoError(t, careful.Delete(b.ctx, name, b.get(name)))
	identity := b.other.Get(b.ctx, "{"+name+"}:election-server").Val()
	require.Eventually(t, func() bool {
		return o.other.Exists(o.ctx, name).Val() == 0 && o.other.Get(o.ctx, "{"+name+"}:election-server").Val() == identity
	}, time.Minute, 10*time.Millisecond)

	require.NoError(t, o.other.ReplicaOf(o.ctx, "no", "one").Err())
	_, err := careful.Create(b.ctx, name, b.signed(time.Hour))
	require.NoError(t, err)
	b.follow(o)
	require.NoError(t, b.other.ReplicaOf(b.ctx, "no", "one").Err())
	require.GreaterOrEqual(t, closed(b, careful, name), quarantine)
}

// follow makes a server the replica of another, and waits until it has the same
// data.
func (b *bench) follow(primary *bench) {
	b.Helper()
	host, port, err := net.SplitHostPort(primary.addr)
	require.NoError(b, err)
	require.NoError(b, b.other.ReplicaOf(b.ctx, host, port).Err())
	require.Eventually(b, func() bool {
		return strings.Contains(b.other.Info(b.ctx, "replication").Val(), "master_link_status:up")
	}, time.Minute, 10*time.Millisecond)
}

func TestAQuarantineIsGivenInWholeMillisecondsOrIsRefused(t *testing.T) {
	b := newBench(t, testenv.Redis(t))
	name := b.name()
	_, err := rediskv.New(b.other, &rediskv.Options{Quarantine: -time.Second}).Get(b.ctx, name)
	require.ErrorIs(t, err, kv.ErrInvalid)
	require.EqualError(t, err, "rediskv: a quarantine of -1s is negative: kv: invalid request")
	_, err = rediskv.New(b.other, &rediskv.Options{Quarantine: -time.Nanosecond}).Get(b.ctx, name)
	require.ErrorIs(t, err, kv.ErrInvalid, "it is not rounded up to none")

	_, err = rediskv.New(b.other, &rediskv.Options{Quarantine: time.Microsecond}).Create(b.ctx, name, b.signed(time.Hour))
	require.ErrorIs(t, err, kv.ErrHeld, "it is rounded up, not down to none")

	key := "{" + name + "}:election-server"
	for _, damage := range []string{"", "rubbish", "0123 99999999999999999999"} {
		require.NoError(t, b.other.Set(b.ctx, key, damage, 0).Err())
		_, err = rediskv.New(b.other, &rediskv.Options{Quarantine: time.Hour}).Create(b.ctx, name, b.signed(time.Hour))
		require.ErrorIs(t, err, kv.ErrHeld, "what nobody can read is no permission")
	}
}

func TestAClocksStepBackStartsTheQuarantineAnew(t *testing.T) {
	b := newBench(t, testenv.Redis(t))
	name := b.name()
	careful := rediskv.New(b.other, &rediskv.Options{Quarantine: time.Millisecond})
	closed(b, careful, name)
	require.NoError(t, b.store.Delete(b.ctx, name, b.get(name)))
	key := "{" + name + "}:election-server"
	known, _, _ := strings.Cut(b.other.Get(b.ctx, key).Val(), " ")
	require.NoError(t, b.other.Set(b.ctx, key, known+" 9000000000000000", 0).Err())
	_, err := careful.Create(b.ctx, name, b.signed(time.Hour))
	require.ErrorIs(t, err, kv.ErrHeld)
	require.Eventually(t, func() bool {
		_, err := careful.Create(b.ctx, name, b.signed(time.Hour))
		return err == nil
	}, time.Minute, 5*time.Millisecond)
}
