package rediskv_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election/backends/redis"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// beside returns the key of the record's text for a name without braces.
func beside(name string) string { return "{" + name + "}:election-record" }

// expiry returns when a key expires, in ms; -1 if never.
func (b *bench) expiry(key string) int64 {
	b.Helper()
	at, err := b.other.Do(b.ctx, "pexpiretime", key).Int64()
	require.NoError(b, err)
	return at
}

// publish changes the record's value.
func (b *bench) publish(name string, rec kv.Record, value string) kv.Record {
	b.Helper()
	next := rec
	next.Value = value
	next, err := b.store.Swap(b.ctx, name, rec, next)
	require.NoError(b, err)
	return next
}

// lost requires that the owner of rec finds out that it has lost the safe,
// whatever it tries, and that whatever is at the key and beside it is left as it is.
func (b *bench) lost(name string, rec kv.Record) {
	b.Helper()
	value, at := b.other.Get(b.ctx, name).Val(), b.expiry(name)
	text, until := b.other.Dump(b.ctx, beside(name)).Val(), b.expiry(beside(name))
	next := rec
	next.Value = "changed"
	_, err := b.store.Refresh(b.ctx, name, rec)
	require.ErrorIs(b, err, kv.ErrStale, "refresh")
	_, err = b.store.Swap(b.ctx, name, rec, next)
	require.ErrorIs(b, err, kv.ErrStale, "publish")
	_, err = b.store.Swap(b.ctx, name, rec, b.signed(time.Minute))
	require.ErrorIs(b, err, kv.ErrStale, "hand over")
	_, err = b.store.Eval(b.ctx, name, rec, "return redis.call('DEL', KEYS[1])", []string{name})
	require.ErrorIs(b, err, kv.ErrStale, "eval")
	require.ErrorIs(b, b.store.Delete(b.ctx, name, rec), kv.ErrStale, "delete")
	require.Equal(b, value, b.other.Get(b.ctx, name).Val())
	require.Equal(b, at, b.expiry(name))
	require.Equal(b, text, b.other.Dump(b.ctx, beside(name)).Val())
	require.Equal(b, until, b.expiry(beside(name)))
}

func TestAPlainValueIsAtTheKeyAsItIs(t *testing.T) {
	b := newPlainBench(t, testenv.Redis(t))
	for _, value := range []string{
		"host-7", "", "\n", "a\nb", "\x00\xff\n\x00", kv.Encode(kv.Record{Signature: "s", TTL: time.Second, Token: 1, Revision: 1}),
	} {
		name, note := b.name(), "a\nnote"
		at := func(when string, rec kv.Record) {
			t.Helper()
			require.Equal(t, value, rec.Value, when)
			require.Equal(t, note, rec.Note, when)
			require.Equal(t, value, b.other.Get(b.ctx, name).Val(), when)
			require.Equal(t, rec, b.get(name), when)
			require.Equal(t, b.expiry(name), b.expiry(beside(name)), when)
		}
		rec := b.signed(time.Minute)
		rec.Value, rec.Note = value, note
		rec, err := b.store.Create(b.ctx, name, rec)
		require.NoError(t, err)
		at("created", rec)
		begun := b.expiry(name)
		rec = b.publish(name, b.publish(name, rec, "another"), value)
		at("published", rec)
		require.Equal(t, begun, b.expiry(name), "a new value is no refresh")
		next := rec
		note = "another"
		next.Note = note
		rec, err = b.store.Swap(b.ctx, name, rec, next)
		require.NoError(t, err)
		at("noted", rec)
		require.Equal(t, begun, b.expiry(name), "a new note is no refresh")

		require.Eventually(t, func() bool { // the server's clock has to move on by 1 ms
			rec, err = b.store.Refresh(b.ctx, name, rec)
			require.NoError(t, err)
			return b.expiry(name) > begun
		}, slack, time.Millisecond)
		at("refreshed", rec)

		heir := b.signed(time.Hour)
		note = "the heir's"
		heir.Value, heir.Note = value, note
		rec, err = b.store.Swap(b.ctx, name, rec, heir)
		require.NoError(t, err)
		at("handed over", rec)
		require.Greater(t, b.left(name), 30*time.Minute)

		require.NoError(t, b.store.Delete(b.ctx, name, rec))
		require.Zero(t, b.other.Exists(b.ctx, name, beside(name)).Val(), "both keys are gone")
	}
}

// What others do to a plain record, by which it is somebody else's from then on,
// though its value is the same. Some are the only difference that there is.
var thefts = map[string]func(b *bench, name string, rec kv.Record){
	"a bare DEL, and a lock with the same value that expires 1 ms later": func(b *bench, name string, rec kv.Record) {
		relock(b, name, rec, 1)
	},
	"a bare DEL, and a lock with the same value that expires 1 ms sooner": func(b *bench, name string, rec kv.Record) {
		relock(b, name, rec, -1)
	},
	"a bare DEL, and a lock with the same value and the same TTL": func(b *bench, name string, rec kv.Record) {
		require.NoError(b, b.other.Del(b.ctx, name).Err())
		time.Sleep(5 * time.Millisecond) // by the server's clock, at another time than the record
		require.True(b, b.other.SetNX(b.ctx, name, rec.Value, rec.TTL).Val())
	},
	"a bare DEL, and SETNX with the same value": func(b *bench, name string, rec kv.Record) {
		require.NoError(b, b.other.Del(b.ctx, name).Err())
		require.True(b, b.other.SetNX(b.ctx, name, rec.Value, 0).Val())
	},
	"an extension by a program with the same value": func(b *bench, name string, rec kv.Record) {
		time.Sleep(5 * time.Millisecond)
		extend := "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0"
		require.Equal(b, int64(1), b.other.Eval(b.ctx, extend, []string{name}, rec.Value, rec.TTL.Milliseconds()).Val())
	},
	"another value with the same expiry": func(b *bench, name string, rec kv.Record) {
		require.NoError(b, b.other.Set(b.ctx, name, rec.Value+"!", redis.KeepTTL).Err())
	},
	"another value of the same length with the same expiry": func(b *bench, name string, rec kv.Record) {
		require.NoError(b, b.other.Set(b.ctx, name, strings.Repeat("!", len(rec.Value)), redis.KeepTTL).Err())
	},
	"the key's expiry stripped": func(b *bench, name string, _ kv.Record) {
		require.True(b, b.other.Persist(b.ctx, name).Val())
	},
	"the other key's expiry stripped": func(b *bench, name string, _ kv.Record) {
		require.True(b, b.other.Persist(b.ctx, beside(name)).Val())
	},
	"the other key evicted": func(b *bench, name string, _ kv.Record) {
		require.Equal(b, int64(1), b.other.Del(b.ctx, beside(name)).Val())
	},
}

// What others do to the key beside a plain record: the same, and it is theirs then.
var occupations = map[string]func(b *bench, name string, rec kv.Record){
	"the other key overwritten with the value": func(b *bench, name string, rec kv.Record) {
		require.NoError(b, b.other.Set(b.ctx, beside(name), rec.Value, redis.KeepTTL).Err())
	},
	"the other key overwritten with a line break and the value": func(b *bench, name string, rec kv.Record) {
		require.NoError(b, b.other.Set(b.ctx, beside(name), "\n"+rec.Value, redis.KeepTTL).Err())
	},
	"the other key of another type": func(b *bench, name string, _ kv.Record) {
		require.NoError(b, b.other.Del(b.ctx, beside(name)).Err())
		require.NoError(b, b.other.RPush(b.ctx, beside(name), "x").Err())
		require.NoError(b, b.other.PExpireAt(b.ctx, beside(name), time.UnixMilli(b.expiry(name))).Err())
	},
	"the record's text without a line break": func(b *bench, name string, _ kv.Record) {
		text, _, _ := strings.Cut(b.other.Get(b.ctx, beside(name)).Val(), "\n")
		require.NoError(b, b.other.Set(b.ctx, beside(name), text, redis.KeepTTL).Err())
	},
	"JSON of somebody else's, a line break and the value": func(b *bench, name string, rec kv.Record) {
		require.NoError(b, b.other.Set(b.ctx, beside(name), `{"signature":"s","token":1}`+"\n"+rec.Value, redis.KeepTTL).Err())
	},
	"JSON that is no object, a line break and the value": func(b *bench, name string, rec kv.Record) {
		require.NoError(b, b.other.Set(b.ctx, beside(name), "null\n"+rec.Value, redis.KeepTTL).Err())
	},
}

// relock is what an unsafe program does that releases without a look at the
// value, and another one that has waited for it.
func relock(b *bench, name string, rec kv.Record, ms int64) {
	b.Helper()
	at := b.expiry(name) + ms
	require.NoError(b, b.other.Del(b.ctx, name).Err())
	require.NoError(b, b.other.Do(b.ctx, "set", name, rec.Value, "nx", "pxat", at).Err())
}

func TestAPlainRecordIsLostToWhomeverTouchesEitherKey(t *testing.T) {
	for theft, steal := range thefts {
		t.Run(theft, func(t *testing.T) {
			b := newPlainBench(t, testenv.Redis(t))
			name := b.name()
			rec := b.create(name, time.Minute)
			steal(b, name, rec)
			b.stolen(name, rec)
			b.reopened(name, rec)
		})
	}
}

func TestACreateLeavesAloneWhatAnotherProgramHasBesideTheKey(t *testing.T) {
	for occupation, occupy := range occupations {
		t.Run(occupation, func(t *testing.T) {
			b := newPlainBench(t, testenv.Redis(t))
			name := b.name()
			rec := b.create(name, time.Minute)
			occupy(b, name, rec)
			b.stolen(name, rec)

			require.NoError(t, b.other.Del(b.ctx, name).Err())
			b.lost(name, rec)
			theirs, at, drawn := b.other.Dump(b.ctx, beside(name)).Val(), b.expiry(beside(name)), b.other.Get(b.ctx, counter(name)).Val()
			require.NotEmpty(t, theirs)
			_, err := b.store.Create(b.ctx, name, b.signed(time.Minute))
			require.ErrorIs(t, err, kv.ErrHeld)
			require.ErrorContains(t, err, strconv.Quote(beside(name)), "what is in the way")
			require.ErrorContains(t, err, "remove it")
			require.Equal(t, theirs, b.other.Dump(b.ctx, beside(name)).Val())
			require.Equal(t, at, b.expiry(beside(name)))
			require.Equal(t, drawn, b.other.Get(b.ctx, counter(name)).Val(), "nothing was done")
			_, err = b.store.Get(b.ctx, name)
			require.ErrorIs(t, err, kv.ErrVacant)

			require.NoError(t, b.other.Del(b.ctx, beside(name)).Err())
			b.reopened(name, rec)
		})
	}
}

// stolen requires that everybody takes what is at the key for a foreign record.
func (b *bench) stolen(name string, rec kv.Record) {
	b.Helper()
	seen := b.get(name)
	require.True(b, seen.Foreign, "%+v", seen)
	require.Equal(b, b.other.Get(b.ctx, name).Val(), seen.Value)
	require.Equal(b, b.expiry(name) == -1, seen.Permanent)
	for yielded, err := range b.store.Watch(b.ctx, name) {
		require.NoError(b, err)
		require.Equal(b, seen, yielded)
		break
	}
	b.lost(name, rec)
	_, err := b.store.Create(b.ctx, name, b.signed(time.Minute))
	require.ErrorIs(b, err, kv.ErrHeld)
	require.Equal(b, seen, b.get(name))
}

// reopened requires that another can lead once nothing is at the key, and that
// rec's owner has lost the safe for good.
func (b *bench) reopened(name string, rec kv.Record) {
	b.Helper()
	require.NoError(b, b.other.Del(b.ctx, name).Err())
	b.lost(name, rec)
	_, err := b.store.Get(b.ctx, name)
	require.ErrorIs(b, err, kv.ErrVacant)
	next := b.create(name, time.Minute)
	require.Greater(b, next.Token, rec.Token)
	require.Equal(b, next, b.get(name))
	_, err = b.store.Refresh(b.ctx, name, next)
	require.NoError(b, err, "what the old record left beside the key is replaced")
}

// An old program of the same name releases a lock that it has long lost.
func TestAPlainRecordThatAProgramWithTheSameValueReleasedIsLost(t *testing.T) {
	b := newPlainBench(t, testenv.Redis(t))
	name := b.name()
	rec := b.create(name, time.Minute)
	seen, _ := b.watch(b.store, name)
	require.Equal(t, rec, b.next(seen, slack).rec)
	release := "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"
	require.Equal(t, int64(1), b.other.Eval(b.ctx, release, []string{name}, rec.Value).Val())
	b.seesVacancy(seen, slack)
	b.lost(name, rec)
	require.Equal(t, int64(1), b.other.Exists(b.ctx, beside(name)).Val(), "it is left alone, and means nothing")
	_, err := b.store.Get(b.ctx, name)
	require.ErrorIs(t, err, kv.ErrVacant)
	next := b.create(name, time.Minute)
	require.Equal(t, next, b.get(name))
	b.lost(name, rec)
}

func TestAPlainRecordGetsBackTheExpiryThatWasStrippedFromBothKeys(t *testing.T) {
	b := newPlainBench(t, testenv.Redis(t))
	for restore, call := range map[string]func(name string, rec kv.Record) (kv.Record, error){
		"refresh": func(name string, rec kv.Record) (kv.Record, error) { return b.store.Refresh(b.ctx, name, rec) },
		"publish": func(name string, rec kv.Record) (kv.Record, error) {
			next := rec
			next.Value = "changed"
			return b.store.Swap(b.ctx, name, rec, next)
		},
	} {
		name := b.name()
		rec := b.create(name, time.Minute)
		require.True(t, b.other.Persist(b.ctx, name).Val())
		require.True(t, b.other.Persist(b.ctx, beside(name)).Val())
		seen := b.get(name)
		require.True(t, seen.Owns(rec), restore)
		require.True(t, seen.Permanent, restore)
		rec, err := call(name, rec)
		require.NoError(t, err, restore)
		require.Equal(t, rec, b.get(name), restore)
		require.Greater(t, b.left(name), 30*time.Second, restore)
		require.Equal(t, b.expiry(name), b.expiry(beside(name)), restore)
	}
}

func TestCandidatesThatKeepValuesInAnotherWaySeeAForeignRecord(t *testing.T) {
	plain, text := newPlainBench(t, testenv.Redis(t)), newBench(t, testenv.Redis(t))
	for _, pair := range [][2]*bench{{plain, text}, {text, plain}} {
		ours, theirs := pair[0], pair[1]
		name := ours.name()
		rec := ours.create(name, time.Minute)
		at := ours.other.Get(ours.ctx, name).Val()
		seen := theirs.get(name)
		require.True(t, seen.Foreign)
		require.Equal(t, at, seen.Value)
		_, err := theirs.store.Create(ours.ctx, name, ours.signed(time.Minute))
		require.ErrorIs(t, err, kv.ErrHeld)
		theirs.lost(name, rec)
		_, err = ours.store.Refresh(ours.ctx, name, rec)
		require.NoError(t, err)
		require.Equal(t, rec, ours.get(name))
	}
}

// The text of a record is a value like any other.
func TestARecordsTextAtTheKeyIsForeignWhereValuesArePlain(t *testing.T) {
	b := newPlainBench(t, testenv.Redis(t))
	name := b.name()
	rec := b.create(name, time.Minute)
	text := kv.Encode(rec)
	require.NoError(t, b.other.Set(b.ctx, name, text, redis.KeepTTL).Err())
	seen := b.get(name)
	require.True(t, seen.Foreign)
	require.Equal(t, text, seen.Value)
	b.lost(name, rec)
}

// The server has PEXPIRETIME, but does not let this user have it.
func TestWithoutTheCommandsOfRedis7APlainRecordIsToldApart(t *testing.T) {
	server := testenv.StartRedis(t, "--user", "old", "on", ">pw", "~*", "&*", "+@all", "-pexpiretime")
	b := newPlainBench(t, server.Addr())
	client := b.client(&redis.Options{Addr: server.Addr(), Username: "old", Password: "pw", ContextTimeoutEnabled: true})
	require.ErrorContains(t, client.Do(b.ctx, "pexpiretime", "x").Err(), "NOPERM")
	b.store = rediskv.New(client, &rediskv.Options{Plain: true})
	name := b.name()
	rec := b.create(name, time.Minute)
	for range 2000 { // the clock ticks between two calls of a few of them
		require.Equal(t, rec, b.get(name))
	}
	_, err := b.store.Refresh(b.ctx, name, rec)
	require.NoError(t, err)
	for _, ms := range []int64{-20_000, 20_000} {
		relock(b, name, rec, ms)
		require.True(t, b.get(name).Foreign)
		b.lost(name, rec)
		require.NoError(t, b.other.PExpireAt(b.ctx, name, time.UnixMilli(b.expiry(beside(name)))).Err())
		require.Equal(t, rec, b.get(name), "by the rule")
	}
	for _, stripped := range []string{name, beside(name)} {
		require.True(t, b.other.Persist(b.ctx, stripped).Val())
		require.True(t, b.get(name).Foreign)
		b.lost(name, rec)
		require.NoError(t, b.other.PExpireAt(b.ctx, stripped, time.Now().Add(time.Minute)).Err())
		require.NoError(t, b.other.Del(b.ctx, name).Err())
		rec = b.create(name, time.Minute)
	}
}

func TestTheCommandsThatTheDocumentationNamesSuffice(t *testing.T) {
	commands := []string{"+eval", "+evalsha", "+type", "+exists", "+get", "+getex", "+set", "+del", "+pttl", "+pexpireat", "+time", "+info", "+pexpiretime", "+publish"}
	server := testenv.StartRedis(t, append([]string{"--user", "leader", "on", ">pw", "~*", "&election:*", "-@all", "+hello", "+client"}, commands...)...)
	for _, plain := range []bool{false, true} {
		b := newBench(t, server.Addr())
		client := b.client(&redis.Options{Addr: server.Addr(), Username: "leader", Password: "pw", ContextTimeoutEnabled: true})
		b.store = rediskv.New(client, &rediskv.Options{Plain: plain, Quarantine: time.Millisecond})
		name := b.name()
		closed(b, b.store, name)
		rec := b.publish(name, b.get(name), "changed")
		require.Equal(t, rec, b.get(name))
		_, err := b.store.Refresh(b.ctx, name, rec)
		require.NoError(t, err)
		require.NoError(t, b.store.Delete(b.ctx, name, rec))
	}
	log, err := newBench(t, server.Addr()).other.Do(t.Context(), "acl", "log").Slice()
	require.NoError(t, err)
	require.Empty(t, log, "what the server refused")
}

func TestAQuarantineIsKeptWhereValuesArePlain(t *testing.T) {
	b := newPlainBench(t, testenv.Redis(t))
	careful := rediskv.New(b.other, &rediskv.Options{Plain: true, Quarantine: 300 * time.Millisecond})
	name := b.name()
	require.GreaterOrEqual(t, closed(b, careful, name), 300*time.Millisecond)
	rec := b.get(name)
	require.False(t, rec.Foreign)
	require.NoError(t, careful.Delete(b.ctx, name, rec))
}

func TestAPlainRecordIsKeptWhileItsSlotMigrates(t *testing.T) {
	t.Parallel() // it mostly waits
	b := newPlainBench(t, testenv.StartRedisCluster(t, 3, 0).Addrs()...)
	name := b.name()
	rec := b.create(name, time.Hour)
	m := b.migrate(name)
	kept := func() {
		t.Helper()
		require.Equal(t, rec, b.get(name))
		_, err := b.store.Refresh(b.ctx, name, rec)
		require.NoError(t, err)
	}
	kept()
	m.move(name) // the two keys are at two nodes
	for op, err := range map[string]error{
		"get":     func() error { _, err := b.store.Get(b.ctx, name); return err }(),
		"refresh": func() error { _, err := b.store.Refresh(b.ctx, name, rec); return err }(),
		"delete":  b.store.Delete(b.ctx, name, rec),
	} {
		b.unknown(err)
		require.ErrorContains(t, err, "TRYAGAIN", op)
	}
	m.move(beside(name))
	// What MIGRATE keeps is the time that was left to each of them.
	at := time.Now().Add(time.Hour)
	require.True(t, b.other.PExpireAt(b.ctx, name, at).Val())
	require.True(t, b.other.PExpireAt(b.ctx, beside(name), at).Val())
	kept()
	m.move(counter(name))
	m.end()
	kept()
	rec = b.publish(name, rec, "changed")
	kept()
	require.NoError(t, b.store.Delete(b.ctx, name, rec))
	require.Greater(t, b.create(name, time.Hour).Token, rec.Token)
}
