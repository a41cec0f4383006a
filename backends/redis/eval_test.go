package rediskv_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/redis"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// set is what a leader would do: to write a value at a key.
const set = `return redis.call('SET', KEYS[1], ARGV[1])`

// data returns a key for data in the same slot as a safe without braces in its
// name.
func data(name string) string { return "{" + name + "}:data" }

// writes requires that the owner of rec can write a value.
func (b *bench) writes(name string, rec kv.Record, value string) {
	b.Helper()
	reply, err := b.store.Eval(b.ctx, name, rec, set, []string{data(name)}, value)
	require.NoError(b, err)
	require.Equal(b, "OK", reply)
	require.Equal(b, value, b.other.Get(b.ctx, data(name)).Val())
}

// refused requires that nobody writes as the owner of rec.
func (b *bench) refused(name string, rec kv.Record) {
	b.Helper()
	before := b.other.Get(b.ctx, data(name)).Val()
	_, err := b.store.Eval(b.ctx, name, rec, set, []string{data(name)}, "from the grave")
	require.ErrorIs(b, err, kv.ErrStale)
	require.Equal(b, before, b.other.Get(b.ctx, data(name)).Val())
}

func TestAScriptIsCarriedOutForTheOwnerAlone(t *testing.T) {
	inBothForms(t, func(b *bench) {
		name := b.name()
		rec := b.create(name, time.Minute)
		b.writes(name, rec, "one")
		_, err := b.store.Refresh(b.ctx, name, rec)
		require.NoError(b, err)
		fresh := b.publish(name, rec, "another value")
		b.writes(name, rec, "two")
		b.writes(name, fresh, "three")

		heir := b.signed(time.Minute)
		heir, err = b.store.Swap(b.ctx, name, fresh, heir)
		require.NoError(b, err)
		b.refused(name, rec)
		b.refused(name, fresh)
		b.writes(name, heir, "the heir's")

		// The same signature, as it comes in again with a create that was late.
		require.NoError(b, b.store.Delete(b.ctx, name, heir))
		b.refused(name, heir)
		again, err := b.store.Create(b.ctx, name, heir)
		require.NoError(b, err)
		require.Equal(b, heir.Signature, again.Signature)
		b.refused(name, heir)
		b.writes(name, again, "the second term's")

		require.NoError(b, b.other.Set(b.ctx, name, "host-7", 0).Err())
		b.refused(name, again)
		require.NoError(b, b.other.Del(b.ctx, name).Err())
		b.refused(name, again)
	})
}

func TestARecordThatHasExpiredOwnsNoScript(t *testing.T) {
	inBothForms(t, func(b *bench) {
		name := b.name()
		rec := b.create(name, 50*time.Millisecond)
		require.Eventually(b, func() bool { return b.other.Exists(b.ctx, name).Val() == 0 }, slack, time.Millisecond)
		b.refused(name, rec)
	})
}

func TestAScriptHasItsOwnKeysAndArguments(t *testing.T) {
	b := newBench(t, testenv.Redis(t))
	name := b.name()
	rec := b.create(name, time.Minute)
	keys, args := make([]string, 3000), make([]any, 9000) // more than Lua unpacks
	for i := range keys {
		keys[i] = fmt.Sprint("k", i)
	}
	for i := range args {
		args[i] = i
	}
	reply, err := b.store.Eval(b.ctx, name, rec, `
		local function owned() return 'its own' end -- a name that is used here too
		return {#KEYS, KEYS[1], KEYS[#KEYS], #ARGV, ARGV[1], ARGV[#ARGV], owned(), redis.sha1hex('')}
		-- and a comment at the end`, keys, args...)
	require.NoError(t, err)
	require.Equal(t, []any{int64(3000), "k0", "k2999", int64(9000), "0", "8999", "its own", "da39a3ee5e6b4b0d3255bfef95601890afd80709"}, reply)

	reply, err = b.store.Eval(b.ctx, name, rec, "return #KEYS + #ARGV", nil)
	require.NoError(t, err)
	require.Equal(t, int64(0), reply)
	_, err = b.store.Eval(b.ctx, name, rec, "return numbered or store or settled or plain", nil)
	require.ErrorContains(t, err, "nonexistent global variable", "it sees nothing of this package")
}

func TestWhatAScriptReturnsIsWhatTheCallerGets(t *testing.T) {
	b := newBench(t, testenv.Redis(t))
	name := b.name()
	rec := b.create(name, time.Minute)
	for source, want := range map[string]any{
		"return 7":                   int64(7),
		"return ''":                  "",
		"return 'a\\0b'":             "a\x00b",
		"return {}":                  []any{},
		"return {1, {2, 'x'}, 'y'}":  []any{int64(1), []any{int64(2), "x"}, "y"},
		"return true":                int64(1),
		"return {ok = 'FINE'}":       "FINE",
		"return 1, 2":                int64(1),
		"return {false, 1}":          []any{nil, int64(1)},
		"return redis.call('PING');": "PONG",
	} {
		reply, err := b.store.Eval(b.ctx, name, rec, source, nil)
		require.NoError(t, err, source)
		require.Equal(t, want, reply, source)
	}
	for _, source := range []string{"", "return", "return nil", "return false", "-- nothing"} {
		reply, err := b.store.Eval(b.ctx, name, rec, source, nil)
		require.Equal(t, redis.Nil, err, source)
		require.Nil(t, reply, source)
	}
}

func TestTheErrorsOfAScriptAreItsOwn(t *testing.T) {
	b := newBench(t, testenv.Redis(t))
	name := b.name()
	rec := b.create(name, time.Minute)
	require.NoError(t, b.other.Set(b.ctx, "a-string", "x", time.Minute).Err())
	for source, want := range map[string]string{
		"return redis.error_reply('MINE it is too late')":      "MINE it is too late",
		"return {err = 'kv: the record is not the one given'}": "kv: the record is not the one given",
		"return redis.call('INCR', 'a-string')":                "ERR value is not an integer or out of range",
		"return redis.pcall('INCR', 'a-string')":               "ERR value is not an integer or out of range",
		"error('thrown')":                                      "thrown",
		"\n\nerror('thrown')":                                  "user_script:3",
		"return (":                                             "Error compiling script",
		"return 1 end":                                         "Error compiling script",
		"if true then return 1":                                "Error compiling script",
		"return undeclared":                                    "nonexistent global variable 'undeclared'",
	} {
		_, err := b.store.Eval(b.ctx, name, rec, source, nil)
		b.unknown(err)
		var refusal redis.Error
		require.ErrorAs(t, err, &refusal, source)
		require.Contains(t, refusal.Error(), want, source)
		require.Contains(t, err.Error(), name, source)
	}
	_, err := b.store.Eval(b.ctx, name, rec, "return redis.error_reply('MINE x')", nil)
	require.True(t, redis.HasErrorPrefix(err, "MINE"))
}

func TestAScriptThatCannotBeFencedIsRefused(t *testing.T) {
	b := newBench(t, testenv.Redis(t))
	name := b.name()
	rec := b.create(name, time.Minute)
	foreign := b.name()
	require.NoError(t, b.other.Set(b.ctx, foreign, "host-7", time.Minute).Err())
	for why, try := range map[string]func() error{
		"want a safe": func() error { _, err := b.store.Eval(b.ctx, "", rec, set, nil); return err },
		"left alone":  func() error { _, err := b.store.Eval(b.ctx, foreign, b.get(foreign), set, nil); return err },
		"signature":   func() error { _, err := b.store.Eval(b.ctx, name, kv.Record{Token: rec.Token}, set, nil); return err },
		"#!":          func() error { _, err := b.store.Eval(b.ctx, name, rec, "#!lua\n"+set, nil); return err },
	} {
		require.ErrorIs(t, try(), kv.ErrInvalid, why)
	}
}

func TestAScriptIsSentOnce(t *testing.T) {
	server := testenv.StartRedis(t)
	b := newBench(t, server.Addr())
	proxy := testenv.NewProxy(t, server.Addr())
	store := rediskv.New(b.client(&redis.Options{Addr: proxy.Addr(), MaxRetries: 3, ReadTimeout: time.Minute}), nil)
	name := b.name()
	rec := b.create(name, time.Minute)
	const incr = `return redis.call('INCR', KEYS[1])`
	count := func(n string) {
		t.Helper()
		require.Equal(t, n, b.other.Get(b.ctx, data(name)).Val())
	}
	_, err := store.Eval(b.ctx, name, rec, incr, []string{data(name)})
	require.NoError(t, err)
	count("1")
	b.losesReply(proxy, func() error { _, err := store.Eval(b.ctx, name, rec, incr, []string{data(name)}); return err })
	count("2")

	require.NoError(t, b.other.ScriptFlush(b.ctx).Err())
	_, err = store.Eval(b.ctx, name, rec, incr, []string{data(name)})
	require.NoError(t, err, "a script that the server has forgotten is sent in full")
	count("3")

	// Its own error, by which a client would send it again.
	_, err = store.Eval(b.ctx, name, rec, `redis.call('INCR', KEYS[1]) return redis.error_reply('NOSCRIPT or so')`, []string{data(name)})
	require.ErrorContains(t, err, "NOSCRIPT or so")
	count("4")
	_, err = store.Eval(b.ctx, name, rec, `redis.call('INCR', KEYS[1]) error({err = 'NOSCRIPT or so'})`, []string{data(name)})
	require.ErrorContains(t, err, "NOSCRIPT or so")
	count("5")
	_, err = store.Eval(b.ctx, name, rec, `redis.call('INCR', KEYS[1]) error({err = 'NOSCRIPT or so'})`, []string{data(name)})
	require.ErrorContains(t, err, "NOSCRIPT or so", "now that the server knows it")
	count("6")
}

func TestAScriptOnAReplicaWritesNothing(t *testing.T) {
	b := newBench(t, testenv.StartRedis(t).Addr())
	name := b.name()
	rec := b.create(name, time.Hour)
	require.NoError(t, b.other.ReplicaOf(b.ctx, "127.0.0.1", "1").Err()) // nobody is there: it keeps what it has
	_, err := b.store.Eval(b.ctx, name, rec, set, []string{data(name)}, "x")
	b.unknown(err)
	require.True(t, redis.HasErrorPrefix(err, "READONLY"), err)
}

// It could not, had the check written anything.
func TestAScriptThatDoesNotEndCanBeKilled(t *testing.T) {
	server := testenv.StartRedis(t, "--busy-reply-threshold", "10")
	for _, b := range []*bench{newBench(t, server.Addr()), newPlainBench(t, server.Addr())} {
		name := b.name()
		rec := b.create(name, time.Hour)
		ended := make(chan error, 1)
		go func() {
			_, err := b.store.Eval(b.ctx, name, rec, "while true do end", nil)
			ended <- err
		}()
		var err error
		require.Eventually(t, func() bool {
			b.other.ScriptKill(b.ctx)
			select {
			case err = <-ended:
				return true
			default:
				return false
			}
		}, slack, 10*time.Millisecond)
		b.unknown(err)
		require.ErrorContains(t, err, "killed by user")
	}
}

func TestInAClusterAScriptHasTheKeysOfTheSafesSlot(t *testing.T) {
	t.Parallel() // it mostly waits
	addrs := testenv.StartRedisCluster(t, 3, 0).Addrs()
	for _, b := range []*bench{newBench(t, addrs...), newPlainBench(t, addrs...)} {
		name := b.name()
		rec := b.create(name, time.Minute)
		b.writes(name, rec, "one")
		elsewhere := b.name()
		require.NotEqual(t, b.other.ClusterKeySlot(b.ctx, name).Val(), b.other.ClusterKeySlot(b.ctx, elsewhere).Val())
		_, err := b.store.Eval(b.ctx, name, rec, set, []string{elsewhere}, "two")
		b.unknown(err)
		require.True(t, redis.HasErrorPrefix(err, "CROSSSLOT"), err)
		require.Zero(t, b.other.Exists(b.ctx, elsewhere).Val())
	}
}

// candidate returns one in the election called name, with a way to the server of
// its own.
func (b *bench) candidate(name, id, addr string, ttl time.Duration) (*election.Candidate, *rediskv.Store) {
	b.Helper()
	store := rediskv.New(b.client(&redis.Options{Addr: addr, ContextTimeoutEnabled: true}), &rediskv.Options{Plain: b.plain})
	c, err := election.New(store, name, &election.Options{ID: id, Value: id + "'s", TTL: ttl})
	require.NoError(b, err)
	return c, store
}

func (b *bench) elected(c *election.Candidate) *election.Term {
	b.Helper()
	term, err := c.Campaign(b.ctx)
	require.NoError(b, err)
	b.Cleanup(func() { _ = term.Resign(context.WithoutCancel(b.ctx)) })
	return term
}

func TestALeaderThatSleptBeyondItsTermWritesNothing(t *testing.T) {
	t.Parallel() // it mostly waits
	inBothForms(t, func(b *bench) {
		for ttl := time.Second; !b.sleepsBeyondItsTerm(ttl); ttl *= 2 {
			require.Less(b, ttl, 20*time.Second, "this machine is too busy to write within a term")
		}
	})
}

// sleepsBeyondItsTerm reports whether the leader was awake for long enough to write something.
func (b *bench) sleepsBeyondItsTerm(ttl time.Duration) bool {
	b.Helper()
	proxy := testenv.NewProxy(b, b.addr)
	name := b.name()
	sleeper, asleep := b.candidate(name, "sleeper", proxy.Addr(), ttl)
	next, store := b.candidate(name, "next", b.addr, time.Minute)
	old := b.elected(sleeper)
	rec := old.Record()
	_, err := asleep.Eval(b.ctx, name, rec, set, []string{data(name)}, "awake")
	if old.Err() != nil {
		return false
	}
	require.NoError(b, err)

	proxy.BlackHole() // asleep: it refreshes nothing
	term := b.elected(next)
	require.Greater(b, term.Token(), old.Token())
	b.store = store
	b.writes(name, term.Record(), "the next one's")
	proxy.Heal()
	b.store = asleep
	b.refused(name, rec)
	require.Equal(b, "the next one's", b.other.Get(b.ctx, data(name)).Val())
	b.store = store
	b.writes(name, term.Record(), "the next one's again")
	return true
}

func TestALeaderThatProclaimedAnewWritesStill(t *testing.T) {
	inBothForms(t, func(b *bench) {
		name := b.name()
		leader, store := b.candidate(name, "leader", b.addr, time.Minute)
		term := b.elected(leader)
		b.store = store
		before := term.Record()
		require.NoError(b, term.Proclaim(b.ctx, "busy"))
		require.NotEqual(b, before.Revision, term.Record().Revision)
		b.writes(name, before, "by the record of before")
		own, rec := term.NamedRecord()
		b.writes(own, rec, "by that of now")
	})
}

func TestALeaderThatHandedOverWritesNothing(t *testing.T) {
	inBothForms(t, func(b *bench) {
		name := b.name()
		leader, store := b.candidate(name, "leader", b.addr, time.Minute)
		term := b.elected(leader)
		b.store = store
		rec := term.Record()
		heir, err := store.Swap(b.ctx, name, rec, b.signed(time.Minute))
		require.NoError(b, err)
		b.refused(name, rec)
		b.writes(name, heir, "the heir's")
		require.True(b, strings.HasPrefix(rec.Signature, "leader/"))
	})
}
