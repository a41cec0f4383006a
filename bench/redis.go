package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

func redisClient(addr string) *redis.Client { return redis.NewClient(&redis.Options{Addr: addr}) }

func redisPeers() []contender {
	return []contender{
		{
			Name: "redsync", Store: inRedis, Kind: peer,
			How:  "LockContext with its default delay of 50 to 250 ms, repeated; extended each third of the TTL by the bench; lost by Until",
			open: openRedsync,
		},
		{
			Name: "redislock", Store: inRedis, Kind: peer,
			How:  "Obtain with LinearBackoff(100 ms), repeated; a watchdog refreshes each third of the TTL; lost when that fails",
			open: openRedislock,
		},
		{
			Name: "rueidislock", Store: inRedis, Kind: peer,
			How:  "KeyMajority 1 and NoLoopTracking, as its README has it for one server; TryNextAfter 1 s, since one that is not answered within the default of 20 ms waits for ever; candidates of one process queue in its Locker",
			open: openRueidislock,
		},
		{
			Name: "limit", Store: inRedis, Kind: limit,
			How:  "no election: a script that sets and one that deletes; a hand-over is a script that publishes, and one of the next",
			open: openRedisBaton,
		},
	}
}

// renewing keeps a lock by renew each third of the TTL until it is released. Its
// lost is closed when renew says so, or at the end that renew tells.
func renewing(ttl time.Duration, renew func(context.Context) (until time.Time, _ error), release func(context.Context) error) *held {
	lost := make(chan struct{})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(ttl / 3)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if _, err := renew(ctx); err != nil && ctx.Err() == nil {
				close(lost)
				return
			}
		}
	}()
	return &held{lost: lost, release: func(ctx context.Context) error {
		stop()
		<-done
		return release(ctx)
	}}
}

type redsyncFamily struct {
	client *redis.Client
	locks  *redsync.Redsync
	ttl    time.Duration
}

func openRedsync(seat seat) (family, error) {
	client := redisClient(seat.Addr)
	return redsyncFamily{client, redsync.New(goredis.NewPool(client)), seat.TTL}, nil
}

func (f redsyncFamily) close() { f.client.Close() }

func (f redsyncFamily) candidate(place place) (candidate, error) {
	return redsyncCandidate{f.locks.NewMutex(place.Election, redsync.WithExpiry(f.ttl)), f.ttl}, nil
}

type redsyncCandidate struct {
	mutex *redsync.Mutex
	ttl   time.Duration
}

func (c redsyncCandidate) acquire(ctx context.Context) (*held, error) {
	for {
		err := c.mutex.LockContext(ctx)
		if err == nil {
			break
		}
		var taken *redsync.ErrTaken
		if ctx.Err() != nil || !errors.As(err, &taken) && !errors.Is(err, redsync.ErrFailed) {
			return nil, errors.Join(err, context.Cause(ctx))
		}
	}
	return c.keep(), nil
}

// keep extends the lock, and takes it for lost when Until has passed, as a user does
// who heeds it.
func (c redsyncCandidate) keep() *held {
	lost := make(chan struct{})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(c.ttl / 3)
		defer tick.Stop()
		until := c.mutex.Until()
		for {
			end := time.NewTimer(time.Until(until))
			select {
			case <-ctx.Done():
				end.Stop()
				return
			case <-end.C:
				close(lost)
				return
			case <-tick.C:
				end.Stop()
			}
			bounded, cancel := context.WithDeadline(ctx, until)
			ok, err := c.mutex.ExtendContext(bounded)
			cancel()
			if err == nil && ok {
				until = c.mutex.Until()
			}
		}
	}()
	return &held{lost: lost, release: func(ctx context.Context) error {
		stop()
		<-done
		_, err := c.mutex.UnlockContext(ctx)
		return err
	}}
}

type redislockFamily struct {
	client *redis.Client
	locks  *redislock.Client
	ttl    time.Duration
}

func openRedislock(seat seat) (family, error) {
	client := redisClient(seat.Addr)
	return redislockFamily{client, redislock.New(client), seat.TTL}, nil
}

func (f redislockFamily) close() { f.client.Close() }

func (f redislockFamily) candidate(place place) (candidate, error) {
	return redislockCandidate{f.locks, place.Election, f.ttl}, nil
}

type redislockCandidate struct {
	locks *redislock.Client
	key   string
	ttl   time.Duration
}

func (c redislockCandidate) acquire(ctx context.Context) (*held, error) {
	for {
		lock, err := c.locks.Obtain(ctx, c.key, c.ttl, &redislock.Options{RetryStrategy: redislock.LinearBackoff(100 * time.Millisecond)})
		if err == nil {
			refresh := func(ctx context.Context) (time.Time, error) { return time.Time{}, lock.Refresh(ctx, c.ttl, nil) }
			return renewing(c.ttl, refresh, lock.Release), nil
		}
		// Obtain gives up after a TTL, perhaps in the middle of a request.
		if ctx.Err() != nil || !errors.Is(err, redislock.ErrNotObtained) && !errors.Is(err, context.DeadlineExceeded) {
			return nil, errors.Join(err, context.Cause(ctx))
		}
	}
}

type rueidislockFamily struct{ locker rueidislock.Locker }

func openRueidislock(seat seat) (family, error) {
	locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption:   rueidis.ClientOption{InitAddress: []string{seat.Addr}},
		KeyValidity:    seat.TTL,
		KeyMajority:    1,
		NoLoopTracking: true,
		TryNextAfter:   time.Second,
	})
	return rueidislockFamily{locker}, err
}

func (f rueidislockFamily) close() { f.locker.Close() }

func (f rueidislockFamily) candidate(place place) (candidate, error) {
	return rueidislockCandidate{f.locker, place.Election}, nil
}

type rueidislockCandidate struct {
	locker rueidislock.Locker
	name   string
}

func (c rueidislockCandidate) acquire(ctx context.Context) (*held, error) {
	// The lock's context is a child of the one given, which bounds the waiting here.
	base, stop := context.WithCancel(context.WithoutCancel(ctx))
	unlink := context.AfterFunc(ctx, stop)
	locked, cancel, err := c.locker.WithContext(base, c.name)
	if err == nil && !unlink() {
		cancel()
		err = context.Cause(ctx)
	}
	if err != nil {
		stop()
		return nil, err
	}
	return &held{lost: locked.Done(), release: func(context.Context) error { cancel(); stop(); return nil }}, nil
}

// redisBaton is the fewest steps on Redis: see baton.
type redisBaton struct{ client *redis.Client }

var (
	setAndPublish = redis.NewScript(`redis.call('SET', KEYS[1], '1'); return redis.call('PUBLISH', KEYS[1], '1')`)
	takeKey       = redis.NewScript(`return redis.call('SET', KEYS[1], '2')`)
	deleteKey     = redis.NewScript(`return redis.call('DEL', KEYS[1])`)
)

func openRedisBaton(seat seat) (family, error) {
	return batonFamily{redisBaton{redisClient(seat.Addr)}}, nil
}

func (b redisBaton) close() { b.client.Close() }

func (b redisBaton) put(ctx context.Context, key string) error {
	return setAndPublish.Run(ctx, b.client, []string{key}).Err()
}

func (b redisBaton) remove(ctx context.Context, key string) error {
	return deleteKey.Run(ctx, b.client, []string{key}).Err()
}

func (b redisBaton) await(ctx context.Context, key string, armed func()) error {
	sub := b.client.Subscribe(ctx, key)
	defer sub.Close()
	if _, err := sub.Receive(ctx); err != nil { // that it is subscribed
		return err
	}
	armed()
	if _, err := sub.ReceiveMessage(ctx); err != nil {
		return err
	}
	return takeKey.Run(ctx, b.client, []string{key}).Err()
}

// redisField finds a field of the text that INFO returns.
func redisField(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
