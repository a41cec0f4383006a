//go:build linux

package interop

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/kv"
)

// redis returns a client as old programs have it: it tries again by itself.
func (p part) redis() *redis.Client {
	return redis.NewClient(&redis.Options{Addr: p.Addr, DialTimeout: impatience, ReadTimeout: impatience, WriteTimeout: impatience})
}

// polling is a lock whose clients ask again and again.
type polling struct {
	client *redis.Client
	// try returns errHeld if somebody else has the lock.
	try func(ctx context.Context) (*grip, error)
}

func (l polling) close() { l.client.Close() }

func (l polling) take(ctx context.Context) (*grip, error) {
	for ctx.Err() == nil {
		if g, err := l.try(ctx); !errors.Is(err, errHeld) {
			return g, err
		}
		pass(ctx, between([2]time.Duration{50 * time.Millisecond, 150 * time.Millisecond}))
	}
	return nil, ctx.Err()
}

var (
	errHeld  = errors.New("somebody else has it")
	errTaken = errors.New("it is not ours any more")
)

func newRedsync(p *process) (oldLock, error) {
	client := p.redis()
	locks := redsync.New(goredis.NewPool(client))
	return polling{client, func(ctx context.Context) (*grip, error) {
		mutex := locks.NewMutex(p.Key, redsync.WithExpiry(p.TTL), redsync.WithTries(1))
		sent := boottime.Now()
		if err := mutex.LockContext(ctx); err != nil {
			if taken := (*redsync.ErrTaken)(nil); errors.As(err, &taken) {
				return nil, errHeld
			}
			return nil, err
		}
		return &grip{
			owner: legible(mutex.Value()), value: mutex.Value(), right: sent + p.TTL,
			renew: func(ctx context.Context) (time.Duration, error) {
				sent := boottime.Now()
				ok, err := mutex.ExtendContext(ctx)
				if err == nil && !ok {
					err = errTaken
				}
				return sent + p.TTL, err
			},
			release: func(ctx context.Context) { _, _ = mutex.UnlockContext(ctx) },
		}, nil
	}}, nil
}

func newRedislock(p *process) (oldLock, error) {
	client := p.redis()
	locks := redislock.New(client)
	return polling{client, func(ctx context.Context) (*grip, error) {
		sent := boottime.Now()
		lock, err := locks.Obtain(ctx, p.Key, p.TTL, &redislock.Options{Metadata: p.sign()})
		if errors.Is(err, redislock.ErrNotObtained) {
			return nil, errHeld
		}
		if err != nil {
			return nil, err
		}
		value := lock.Token() + lock.Metadata()
		return &grip{
			owner: legible(value), value: value, right: sent + p.TTL,
			renew: func(ctx context.Context) (time.Duration, error) {
				sent := boottime.Now()
				return sent + p.TTL, lock.Refresh(ctx, p.TTL, nil)
			},
			release: func(ctx context.Context) { _ = lock.Release(ctx) },
		}, nil
	}}, nil
}

// What the ad-hoc locks say to Redis.
var (
	setWithFence = redis.NewScript(`
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return redis.call('INCR', KEYS[2])
end
return 0`)
	extendOwn = redis.NewScript(`
return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('PEXPIRE', KEYS[1], ARGV[2]) or 0`)
	deleteOwn = redis.NewScript(`
return redis.call('GET', KEYS[1]) == ARGV[1] and redis.call('DEL', KEYS[1]) or 0`)
)

// ownGrip is the grip on a key that is renewed and released by Lua, if it has
// the value still.
func (p *process) ownGrip(client *redis.Client, value string, sent time.Duration) *grip {
	return &grip{
		owner: legible(value), value: value, right: sent + p.TTL,
		renew: func(ctx context.Context) (time.Duration, error) {
			sent := boottime.Now()
			n, err := extendOwn.Run(ctx, client, []string{p.Key}, value, p.TTL.Milliseconds()).Int()
			if err == nil && n == 0 {
				err = errTaken
			}
			return sent + p.TTL, err
		},
		release: func(ctx context.Context) { _ = deleteOwn.Run(ctx, client, []string{p.Key}, value).Err() },
	}
}

// newFencedRedislock does what redislock does with the fence key of its change
// #94, which no release has: a counter beside the lock, in its slot, is
// incremented in the script that takes the lock.
func newFencedRedislock(p *process) (oldLock, error) {
	client := p.redis()
	return polling{client, func(ctx context.Context) (*grip, error) {
		random := make([]byte, 16)
		_, _ = rand.Read(random)
		value := hex.EncodeToString(random) + p.sign()
		sent := boottime.Now()
		token, err := setWithFence.Run(ctx, client, []string{p.Key, "{" + p.Key + "}:fence"}, value, p.TTL.Milliseconds()).Uint64()
		if err != nil {
			return nil, err
		}
		if token == 0 {
			return nil, errHeld
		}
		g := p.ownGrip(client, value, sent)
		g.token = token
		return g, nil
	}}, nil
}

func newSetNX(p *process) (oldLock, error) {
	client := p.redis()
	return polling{client, func(ctx context.Context) (*grip, error) {
		value, sent := p.sign(), boottime.Now()
		ok, err := client.SetNX(ctx, p.Key, value, p.TTL).Result()
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, errHeld
		}
		return p.ownGrip(client, value, sent), nil
	}}, nil
}

// newSetNXAndDel is the lock of many services: SET NX PX with a time that the
// work will surely not exceed, and DEL. It sometimes does exceed it.
//
// So that it can be told what the DEL has deleted, it comes in a MULTI behind a
// GET. To the store that is the same.
func newSetNXAndDel(p *process) (oldLock, error) {
	client := p.redis()
	return polling{client, func(ctx context.Context) (*grip, error) {
		value, sent := p.sign(), boottime.Now()
		ok, err := client.SetNX(ctx, p.Key, value, p.TTL).Result()
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, errHeld
		}
		return &grip{owner: value, value: value, right: sent + p.TTL, release: func(ctx context.Context) { p.del(ctx, client) }}, nil
	}}, nil
}

// opDel is the operation, in an event, of one that deletes whatever is there.
const opDel = "del"

func (p *process) del(ctx context.Context, client *redis.Client) {
	p.note(history.Event{Kind: history.Sent, Op: opDel})
	var found *redis.StringCmd
	_, err := client.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
		found = pipe.Get(ctx, p.Key)
		pipe.Del(ctx, p.Key)
		return nil
	})
	e := history.Event{Kind: history.Answered, Op: opDel, Result: history.OK}
	switch {
	case errors.Is(err, redis.Nil): // nothing was there
	case err != nil:
		e.Result = history.Unknown
	default:
		e.Value, _ = whose(found.Val())
	}
	p.note(e)
}

// newHalfSetNX is the oldest way: SETNX, then EXPIRE. It ends in between, as a
// process does that is killed there.
func newHalfSetNX(p *process) (oldLock, error) {
	client := p.redis()
	return polling{client, func(ctx context.Context) (*grip, error) {
		value := p.sign()
		ok, err := client.SetNX(ctx, p.Key, value, 0).Result()
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, errHeld
		}
		p.note(history.Event{Kind: history.Elected, Value: value, Text: value})
		select {} // until it is killed
	}}, nil
}

// rueidisKey is the key of a name: of the first of one.
func rueidisKey(name string) string { return "rueidislock:0:" + name }

func newRueidislock(p *process) (oldLock, error) {
	locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
		KeyMajority: 1, KeyValidity: p.TTL, ExtendInterval: p.TTL / 3, TryNextAfter: impatience / 2, NoLoopTracking: true,
		ClientOption: rueidis.ClientOption{InitAddress: []string{p.Addr}, Dialer: net.Dialer{Timeout: impatience}, ConnWriteTimeout: impatience},
	})
	if err != nil {
		return nil, err
	}
	return &rueidisLock{p, locker, p.redis()}, nil
}

type rueidisLock struct {
	p      *process
	locker rueidislock.Locker
	look   *redis.Client // the library does not tell the value
}

func (l *rueidisLock) close() {
	l.locker.Close()
	l.look.Close()
}

func (l *rueidisLock) take(ctx context.Context) (*grip, error) {
	held, release, err := l.locker.WithContext(ctx, l.p.Key)
	if err != nil {
		return nil, fmt.Errorf("rueidislock: %w", err)
	}
	g := &grip{lost: held.Done(), early: true, release: func(context.Context) { release() }}
	value, err := l.look.Get(ctx, rueidisKey(l.p.Key)).Result()
	if err == nil && kv.Decode(value).Foreign {
		g.owner, g.value = legible(value), legible(value)
	}
	return g, nil
}
