package rediskv

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// slack is what a busy machine may add.
const slack = 30 * time.Second

// A desk has a register, and a client of its own beside it.
type desk struct {
	*testing.T
	ctx   context.Context
	addr  string
	reg   *register
	other redis.UniversalClient
}

func newDesk(t *testing.T, opts *Options, addrs ...string) *desk {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return &desk{t, ctx, addrs[0], newRegister(client(t, addrs...), opts), client(t, addrs...)}
}

func client(t testing.TB, addrs ...string) redis.UniversalClient {
	t.Helper()
	c := redis.NewUniversalClient(&redis.UniversalOptions{Addrs: addrs, ContextTimeoutEnabled: true})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func (d *desk) name() string { return "register-" + rand.Text() }

func (d *desk) signed() kv.Record {
	return kv.Record{Signature: "sig-" + rand.Text(), Value: "v", TTL: time.Minute}
}

func (d *desk) put(name string, old, next kv.Record) kv.Record {
	d.Helper()
	rec, err := d.reg.Put(d.ctx, name, old, next)
	require.NoError(d, err)
	return rec
}

func (d *desk) get(name string) kv.Record {
	d.Helper()
	rec, err := d.reg.Get(d.ctx, name)
	require.NoError(d, err)
	return rec
}

// refused requires that a put has no effect, which the register knows.
func (d *desk) refused(name string, old, next kv.Record) {
	d.Helper()
	before := d.other.Get(d.ctx, name).Val()
	rec, err := d.reg.Put(d.ctx, name, old, next)
	require.ErrorIs(d, err, kv.ErrStale, "it put in %+v", rec)
	require.Equal(d, before, d.other.Get(d.ctx, name).Val())
}

func TestACellIsWrittenByThoseWhoKnowWhatItHolds(t *testing.T) {
	d := newDesk(t, nil, testenv.Redis(t))
	name, mine := d.name(), d.signed()
	_, err := d.reg.Get(d.ctx, name)
	require.ErrorIs(t, err, kv.ErrVacant)
	first := d.put(name, kv.Record{}, mine)
	require.Equal(t, kv.Record{Signature: mine.Signature, Value: "v", TTL: time.Minute, Token: first.Token, Revision: first.Revision}, first)
	require.Equal(t, first, d.get(name))
	require.Equal(t, first, kv.DecodeObserved(d.other.Get(d.ctx, name).Val()), "what is at the key is the text form")
	d.refused(name, kv.Record{}, d.signed())

	again := d.put(name, first, first)
	require.NotEqual(t, first.Revision, again.Revision, "a refresh is a change")
	require.Equal(t, first.Token, again.Token)
	d.refused(name, first, first)
	d.refused(name, first, d.signed())
	for what, seen := range map[string]kv.Record{
		"another's":       {Signature: "another", Token: again.Token, Revision: again.Revision},
		"another token":   {Signature: again.Signature, Token: again.Token - 1, Revision: again.Revision},
		"a bit of change": {Signature: again.Signature, Token: again.Token, Revision: again.Revision ^ 1},
	} {
		t.Log(what)
		again := mine
		again.Signature = seen.Signature
		d.refused(name, seen, again)
		d.refused(name, seen, d.signed())
		require.ErrorIs(t, d.reg.Remove(d.ctx, name, seen), kv.ErrStale)
	}
	second := d.put(name, again, d.signed())
	require.Greater(t, second.Token, again.Token)
	d.refused(name, again, again)
	require.ErrorIs(t, d.reg.Remove(d.ctx, name, again), kv.ErrStale)
	require.NoError(t, d.reg.Remove(d.ctx, name, second))
	d.refused(name, second, second)
	_, err = d.reg.Get(d.ctx, name)
	require.ErrorIs(t, err, kv.ErrVacant)
	require.Greater(t, d.put(name, kv.Record{}, d.signed()).Token, second.Token)
}

// Texts that an operator has laid out anew, and strings that look like fields.
func TestARevisionIsReadAsItStandsInTheText(t *testing.T) {
	d := newDesk(t, nil, testenv.Redis(t))
	for _, value := range []string{"v", `"revision":1`, `,"revision":1}`, `\"revision":1`, `{"revision":1}`, "revision", "\xff"} {
		name, mine := d.name(), d.signed()
		mine.Signature, mine.Value, mine.Note = value+mine.Signature[:8], value, "n"+value
		if value == "\xff" {
			mine.Signature, mine.Note = "s", "n"
		}
		rec := d.put(name, kv.Record{}, mine)
		rec = d.put(name, rec, rec)
		text := strings.NewReplacer(`,"revision":`, ",\n  \"revision\" : ").Replace(d.other.Get(d.ctx, name).Val())
		require.NoError(t, d.other.Set(d.ctx, name, text, 0).Err())
		require.Equal(t, rec, d.get(name))
		rec = d.put(name, rec, d.signed())
		require.NoError(t, d.reg.Remove(d.ctx, name, rec))
	}
}

// A client's network may deliver twice what it was given once.
func TestARequestThatArrivesTwiceIsCarriedOutOnce(t *testing.T) {
	d := newDesk(t, nil, testenv.Redis(t))
	name, mine := d.name(), d.signed()
	at, err := d.reg.s.place(name)
	require.NoError(t, err)
	text, _ := d.reg.s.form(mine, mine.TTL)
	twice := func(sc script, keys []string, args ...any) kv.Record {
		t.Helper()
		first, err := d.reg.s.run(d.ctx, sc, keys, args...)
		require.NoError(t, err)
		second, err := d.reg.s.run(d.ctx, sc, keys, args...)
		require.NoError(t, err)
		require.Equal(t, first, second)
		require.Equal(t, first, d.other.Get(d.ctx, name).Val())
		return kv.DecodeObserved(fmt.Sprint(first))
	}
	rec := twice(claimScript, at.keys(at.counter), "", 0, 0, mine.Signature, text, newRevision(), at.channel, "")
	next := twice(renewScript, at.keys(), rec.Signature, rec.Token, rec.Revision, text, newRevision(), at.channel)
	require.NotEqual(t, rec.Revision, next.Revision)
	heir := d.signed()
	text, _ = d.reg.s.form(heir, heir.TTL)
	args := []any{next.Signature, next.Token, next.Revision, heir.Signature, text, newRevision(), at.channel, ""}
	last := twice(claimScript, at.keys(at.counter), args...)
	// What is very late finds the record in another state, and leaves it so.
	d.put(name, last, last)
	_, err = d.reg.s.run(d.ctx, claimScript, at.keys(at.counter), args...)
	require.ErrorIs(t, err, redis.Nil)
}

func TestNoTwoRevisionsAreTheSame(t *testing.T) {
	seen := make(map[uint64]bool)
	for range 100_000 {
		r := newRevision()
		require.False(t, seen[r])
		require.Len(t, fmt.Sprint(r), 19, "a refresh takes no more room than the one before")
		seen[r] = true
	}
}

func TestOfAllWhoSeeARecordDeadOneReplacesIt(t *testing.T) {
	d := newDesk(t, nil, testenv.Redis(t))
	name := d.name()
	dead := d.put(name, kv.Record{}, d.signed())
	for range 20 {
		var mu sync.Mutex
		var won []kv.Record
		var crowd sync.WaitGroup
		for range 16 {
			crowd.Go(func() {
				rec, err := d.reg.Put(d.ctx, name, dead, d.signed())
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					won = append(won, rec)
				} else if !errors.Is(err, kv.ErrStale) {
					t.Error(err)
				}
			})
		}
		// The owner is not dead after all, and one of them.
		alive, err := d.reg.Put(d.ctx, name, dead, dead)
		crowd.Wait()
		if err == nil {
			won = append(won, alive)
		}
		require.Len(t, won, 1)
		require.Equal(t, won[0], d.get(name))
		dead = won[0]
	}
}

func TestARecordHasNoExpiryAndLosesOneThatItWasGiven(t *testing.T) {
	d := newDesk(t, nil, testenv.Redis(t))
	name := d.name()
	rec := d.put(name, kv.Record{}, d.signed())
	expiry := func() time.Duration { return d.other.PTTL(d.ctx, name).Val() }
	const none = -time.Nanosecond
	require.Equal(t, none, expiry())
	require.False(t, d.get(name).Permanent, "observers end it")
	require.True(t, d.other.PExpire(d.ctx, name, time.Hour).Val())
	require.Equal(t, rec, d.get(name))
	rec = d.put(name, rec, rec)
	require.Equal(t, none, expiry())
	require.True(t, d.other.PExpire(d.ctx, name, time.Hour).Val())
	d.put(name, rec, d.signed())
	require.Equal(t, none, expiry())
}

func TestTheServersWallClockEndsNoRecordAndTurnsNoTokenBack(t *testing.T) {
	server := testenv.StartRedisWithClock(t)
	d := newDesk(t, nil, server.Addr())
	name := d.name()
	rec := d.put(name, kv.Record{}, d.signed())
	for _, jump := range []time.Duration{100 * 24 * time.Hour, -101 * 24 * time.Hour, time.Hour, -time.Hour} {
		server.JumpClock(jump)
		time.Sleep(10 * time.Millisecond) // the server looks at its clock now and then
		require.Equal(t, rec, d.get(name), "after a jump of %v", jump)
		next := d.put(name, rec, rec)
		require.Equal(t, rec.Token, next.Token)
		d.refused(name, rec, rec)
		rec = d.put(name, next, d.signed())
		require.Greater(t, rec.Token, next.Token, "after a jump of %v", jump)
		require.NoError(t, d.reg.Remove(d.ctx, name, rec))
		again := d.put(name, kv.Record{}, d.signed())
		require.Greater(t, again.Token, rec.Token, "after a jump of %v", jump)
		rec = again
	}
}

func TestTokensOfACellGrowThoughTheServerForgetsEverything(t *testing.T) {
	server := testenv.StartRedis(t)
	d := newDesk(t, nil, server.Addr())
	name := d.name()
	old := d.put(name, kv.Record{}, d.signed())
	require.NoError(t, d.other.FlushAll(d.ctx).Err())
	d.refused(name, old, old)
	rec := d.put(name, kv.Record{}, d.signed())
	require.Greater(t, rec.Token, old.Token)
	server.Kill()
	server.Wipe()
	server.Restart()
	require.Greater(t, d.put(name, kv.Record{}, d.signed()).Token, rec.Token)
}

// A value of the same length takes no more memory; one that is longer may.
func TestWhereMemoryIsShortAnOwnerRefreshesAndNobodyElseWrites(t *testing.T) {
	server := testenv.StartRedis(t)
	d := newDesk(t, nil, server.Addr())
	name := d.name()
	rec := d.put(name, kv.Record{}, d.signed())
	require.NoError(t, d.other.ConfigSet(d.ctx, "maxmemory", "1").Err())
	for range 5 {
		rec = d.put(name, rec, rec)
	}
	longer := rec
	longer.Value += strings.Repeat("x", 100)
	for _, next := range []kv.Record{longer, d.signed()} {
		_, err := d.reg.Put(d.ctx, name, rec, next)
		require.ErrorContains(t, err, "OOM")
		require.Equal(t, rec, d.get(name))
	}
	require.NoError(t, d.reg.Remove(d.ctx, name, rec))
	_, err := d.reg.Put(d.ctx, name, kv.Record{}, d.signed())
	require.ErrorContains(t, err, "OOM")
}

func TestEachRefreshIsSeenByThoseWhoWait(t *testing.T) {
	d := newDesk(t, &Options{Backstop: time.Hour}, testenv.Redis(t))
	name := d.name()
	rec := d.put(name, kv.Record{}, d.signed())
	seen := d.watch(name)
	require.Equal(t, rec, d.next(seen))
	for range 5 {
		rec = d.put(name, rec, rec)
		for d.next(seen) != rec { // the subscription may have come to stand in between
		}
	}
	require.NoError(t, d.reg.Remove(d.ctx, name, rec))
	require.Equal(t, kv.Record{}, d.next(seen))
	rec = d.put(name, kv.Record{}, d.signed())
	require.Equal(t, rec, d.next(seen))
	require.Equal(t, d.put(name, rec, d.signed()), d.next(seen), "a takeover")
}

// Without hints, and with a long backstop, half a TTL is the longest pause.
func TestARefreshIsSeenWithoutHintsToo(t *testing.T) {
	server := testenv.StartRedis(t, "--user", "alice", "on", ">secret", "~*", "resetchannels", "+@all")
	d := newDesk(t, nil, server.Addr())
	c := redis.NewClient(&redis.Options{Addr: server.Addr(), Username: "alice", Password: "secret", ContextTimeoutEnabled: true})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	d.reg = newRegister(c, &Options{Backstop: time.Hour})
	name, mine := d.name(), d.signed()
	mine.TTL = 500 * time.Millisecond
	rec := d.put(name, kv.Record{}, mine)
	seen := d.watch(name)
	require.Equal(t, rec, d.next(seen))
	for range 3 {
		rec = d.put(name, rec, rec)
		require.Equal(t, rec, d.next(seen))
	}
}

// watch reads a watch until the test ends. A vacancy is the zero record.
func (d *desk) watch(name string) <-chan kv.Record {
	ctx, cancel := context.WithCancel(d.ctx)
	c := make(chan kv.Record, 100)
	var reader sync.WaitGroup
	reader.Go(func() {
		for rec, err := range d.reg.Watch(ctx, name) {
			if err == nil || errors.Is(err, kv.ErrVacant) {
				c <- rec
			}
		}
	})
	d.Cleanup(func() {
		cancel()
		reader.Wait()
	})
	return c
}

func (d *desk) next(seen <-chan kv.Record) kv.Record {
	d.Helper()
	timer := time.NewTimer(slack)
	defer timer.Stop()
	select {
	case rec := <-seen:
		return rec
	case <-timer.C:
		require.FailNow(d, "the watch yields nothing")
		panic("unreachable")
	}
}
