//go:build unix

package doctor_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// A redisStreet has keys that begin with PREFIX:.
type redisStreet struct {
	*street
	client *redis.Client
}

func newRedisStreet(t *testing.T) *redisStreet {
	t.Helper()
	addr := testenv.Redis(t)
	client := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	s := newStreet(t)
	s.url = func(params string) string { return "redis://" + addr + "?prefix=" + s.prefix + ":&" + params }
	return &redisStreet{street: s, client: client}
}

// set does what the old locks do: SET NX PX.
func (s *redisStreet) set(name, value string) {
	s.Helper()
	s.setKey(s.prefix+":"+name, value, time.Minute)
}

func (s *redisStreet) setKey(key, value string, ttl time.Duration) {
	s.Helper()
	ok, err := s.client.SetNX(s.ctx, key, value, ttl).Result()
	require.NoError(s, err)
	require.True(s, ok)
	s.Cleanup(func() { s.client.Del(context.Background(), key) })
}

func TestTheDoctorRecognisesTheOldLocksOfRedis(t *testing.T) {
	s := newRedisStreet(t)
	const usual, plain = "plain=false", "plain=true"

	require.Equal(t, []string{"OK", "OK"}, s.examine("nothing", "nothing", usual, plain))

	for _, c := range []struct {
		name, value string
		levels      []string
	}{
		{"redsync", "hSk9pXQ0Zf+uT3bW6yE1Aw==", []string{"WARN", "WARN"}},
		{"redislock", "OZGbK8s5aQW8HLfx6k5IBg", []string{"OK", "OK"}},
		{"redislock with metadata", "OZGbK8s5aQW8HLfx6k5IBgnode-1", []string{"OK", "OK"}},
		{"redis-py", "5f0c1e7a9b3d4f6e8a2b7c9d0e1f2a3b", []string{"OK", "OK"}},
		{"uuid", "550e8400-e29b-41d4-a716-446655440000", []string{"OK", "OK"}},
		{"host", "worker-pod-7d9f8b6c5A-x2x9w", []string{"OK", "OK"}},
		{"one", "1", []string{"OK", "OK"}},
		{"empty", "", []string{"OK", "OK"}},
		{"raw bytes", "\x00\xff\x1b[31m", []string{"OK", "OK"}},
		{"kvtools", `{"Key":"a","Value":"aG9zdC03","LastIndex":7}`, []string{"FAIL", "FAIL"}},
		{"shedlock", "ADDED:2026-01-02T03:04:05.678Z@host-7:550e8400-e29b-41d4-a716-446655440000", []string{"WARN", "WARN"}},
		{"nearly a record", `{"election":1,"signature":"s","ttl_ms":1000}`, []string{"OK", "OK"}},
	} {
		s.set(c.name, c.value)
		require.Equal(t, c.levels, s.examine(c.name, c.name, usual, plain), c.name)
	}

	s.setKey(s.prefix+":stuck", "1", 0)
	require.Equal(t, []string{"FAIL"}, s.examine("SETNX without EXPIRE", "stuck", usual))
	s.setKey(s.prefix+":it's stuck", "1", 0)
	require.Equal(t, []string{"FAIL"}, s.examine("a key to quote", "it's stuck", usual))

	counter := "{" + s.prefix + ":counter}:election-fence"
	t.Cleanup(func() { s.client.Del(context.Background(), counter) })
	for _, damage := range []any{"garbage", "", uint64(1<<53 - 1), "1e3"} {
		require.NoError(t, s.client.Set(t.Context(), counter, damage, time.Minute).Err())
		require.Equal(t, []string{"FAIL"}, s.examine("a damaged counter", "counter", usual), "%v", damage)
	}
	require.NoError(t, s.client.Set(t.Context(), counter, 7, time.Minute).Err())
	require.Equal(t, []string{"OK"}, s.examine("a counter", "counter", usual))

	t.Cleanup(func() { s.client.Del(context.Background(), s.prefix+":hash", s.prefix+":list") })
	require.NoError(t, s.client.HSet(t.Context(), s.prefix+":hash", "a", "b").Err())
	require.Equal(t, []string{"FAIL"}, s.examine("a hash", "hash", usual))
	require.NoError(t, s.client.RPush(t.Context(), s.prefix+":list", "a").Err())
	require.NoError(t, s.client.Expire(t.Context(), s.prefix+":list", time.Minute).Err())
	require.Equal(t, []string{"FAIL"}, s.examine("a list that expires", "list", usual))

	s.requireTold("redis.txt")
}

func TestTheDoctorSaysOfRueidislockHowManyKeysItHas(t *testing.T) {
	s := newRedisStreet(t)
	raw := strings.Repeat("\x01\xfe", 12)

	s.setKey("rueidislock:0:"+s.prefix+":one", raw, time.Minute)
	require.Equal(t, []string{"OK FAIL"}, s.examine("KeyMajority 1", "one", "plain=false"))
	for _, i := range []string{"0", "2"} {
		s.setKey("rueidislock:"+i+":"+s.prefix+":majority", raw, time.Minute)
	}
	require.Equal(t, []string{"OK FAIL"}, s.examine("KeyMajority 2", "majority", "plain=false"))

	// The URL's prefix can make the keys of rueidislock themselves.
	for _, key := range []string{":0:self", ":0:several", ":1:several"} {
		s.setKey(s.prefix+key, raw, time.Minute)
	}
	require.Equal(t, []string{"OK"}, s.examine("KeyMajority 1, with the name of its key", "0:self", "plain=false"))
	require.Equal(t, []string{"FAIL"}, s.examine("KeyMajority 2, with the name of its key", "0:several", "plain=false"))

	s.requireTold("redis-rueidislock.txt")
}

func TestTheDoctorKnowsRecordsInRedisWhateverTheURLSays(t *testing.T) {
	s := newRedisStreet(t)
	const usual, plain = "plain=false", "plain=true"

	s.lead("usual", usual)
	require.Equal(t, []string{"OK", "WARN"}, s.examine("a record", "usual", usual, plain))
	s.lead("plain", plain)
	require.Equal(t, []string{"WARN", "OK"}, s.examine("a plain value", "plain", usual, plain))
	s.lead("{tag}plain", plain)
	require.Equal(t, []string{"WARN", "OK"}, s.examine("a plain value, with a hash tag", "{tag}plain", usual, plain))

	// A bare DEL and another's SET NX of the very same value.
	require.NoError(t, s.client.Del(t.Context(), s.prefix+":plain").Err())
	s.setKey(s.prefix+":plain", "our address", 20*time.Second)
	require.Equal(t, []string{"OK"}, s.examine("another's key with a plain value's value", "plain", plain))

	require.NoError(t, s.client.Persist(t.Context(), s.prefix+":usual").Err())
	require.Equal(t, []string{"WARN"}, s.examine("a record without its expiry", "usual", usual))

	const observed = "expiry=observer"
	s.lead("observed", observed)
	require.Equal(t, []string{"OK", "WARN"}, s.examine("a record whose expiry candidates judge", "observed", observed, usual))
	s.lead("judged", usual)
	require.Equal(t, []string{"WARN"}, s.examine("a record whose expiry the server judges", "judged", observed))

	s.requireTold("redis-records.txt")
}

// What is a record is the store's to say, to the millisecond.
func TestTheDoctorTakesNothingForARecordThatTheStoreDoesNot(t *testing.T) {
	s := newRedisStreet(t)
	for _, params := range []string{"plain=true", "plain=false"} {
		name := "job " + params
		s.lead(name, "plain=true")
		key := s.prefix + ":" + name
		left, err := s.client.PTTL(t.Context(), key).Result()
		require.NoError(t, err)
		require.True(t, s.client.PExpire(t.Context(), key, left+300*time.Millisecond).Val())
		rec, err := s.open("plain=true").KV.Get(t.Context(), name)
		require.NoError(t, err)
		require.True(t, rec.Foreign)
		s.told.Reset()
		require.Equal(t, []string{"OK"}, s.examine("another's extension by 300 ms", name, params))
		require.Contains(t, s.told.String(), "looks like SET NX PX of a program's own")
	}
}

func TestTheDoctorSaysWhatIsInTheWayOfAPlainValue(t *testing.T) {
	s := newRedisStreet(t)
	beside := "{" + s.prefix + ":job}:election-record"
	s.setKey(beside, "theirs", time.Minute)
	_, err := s.open("plain=true").KV.Create(s.ctx, "job", kv.Record{Signature: "s", TTL: time.Minute})
	require.ErrorIs(t, err, kv.ErrHeld)
	require.Equal(t, []string{"FAIL", "OK"}, s.examine("another's key where a plain value's record belongs", "job", "plain=true", "plain=false"))
	require.Contains(t, s.told.String(), `looks like a key of another program where the record belongs`)

	// What an earlier record has left is not in the way.
	s.lead("left", "plain=true")
	require.NoError(t, s.client.Del(t.Context(), s.prefix+":left").Err())
	require.Equal(t, int64(1), s.client.Exists(t.Context(), "{"+s.prefix+":left}:election-record").Val())
	require.Equal(t, []string{"OK"}, s.examine("an earlier record's text", "left", "plain=true"))
}

func TestTheDoctorTellsWhatItMayReadAndWhatItMayNot(t *testing.T) {
	s := newRedisStreet(t)
	addr := s.client.Options().Addr
	user := "reader-" + s.prefix
	require.NoError(t, s.client.Do(t.Context(), "ACL", "SETUSER", user, "on", ">pw", "~"+s.prefix+":*", "~{"+s.prefix+":*", "&*", "+@all").Err())
	t.Cleanup(func() { s.client.Do(context.Background(), "ACL", "DELUSER", user) })
	s.set("job", "1")
	s.url = func(params string) string {
		return "redis://" + user + ":pw@" + addr + "?prefix=" + s.prefix + ":&" + params
	}
	require.Equal(t, []string{"OK WARN"}, s.examine("without the permission to read other keys", "job", "plain=false"))
	require.Contains(t, s.told.String(), "looks like SET NX PX of a program's own")
	require.Contains(t, s.told.String(), `WARN  unknown: look for old locks of "job": key "rueidislock:0:PREFIX:job": NOPERM`)
}
