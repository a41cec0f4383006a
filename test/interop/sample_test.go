//go:build linux

package interop

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/test/interop/coexist"
)

// A look is what one linearizable read of the store has shown, with the store's
// own client: this library has no part in it.
type look struct {
	vacant bool
	owner  string
	value  string // as an old observer reads it
	old    bool
	token  uint64
	left   time.Duration // until it expires, at least; 0 if that is not known
	key    string        // in etcd
	lease  string        // what keeps it, if that can be asked for
}

// A sampler looks at the store all the time.
type sampler struct {
	look  func(ctx context.Context) (look, error)
	alive func(ctx context.Context, lease string) (bool, error) // nil if nothing but a record's time keeps it

	mu         sync.Mutex
	sightings  []coexist.Sighting
	departures []coexist.Departure
	looks      int
	answered   time.Duration // when the last look was
	pause      time.Duration // the longest from one answer to the next
}

// grain is how much early a grant may end: Redis keeps time in milliseconds.
const grain = 2 * time.Millisecond

// run looks until ctx ends.
func (s *sampler) run(ctx context.Context) error {
	last := look{vacant: true}
	var sent time.Duration // of the last look that showed last
	for tick := time.NewTicker(15 * time.Millisecond); ; <-tick.C {
		from := boottime.Now()
		l, err := s.look(ctx)
		to := boottime.Now()
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // it was told to end
		case err != nil:
			return err
		}
		if !last.vacant && (l.vacant || l.owner != last.owner) {
			alive := last.left > 0 && to < sent+last.left-grain
			if s.alive != nil && last.lease != "" {
				if alive, err = s.alive(ctx, last.lease); err != nil && ctx.Err() == nil {
					return err
				}
			}
			s.mu.Lock()
			s.departures = append(s.departures, coexist.Departure{Owner: last.owner, By: to, Alive: alive})
			s.mu.Unlock()
		}
		s.see(l, !l.vacant && !last.vacant && l.owner == last.owner, from, to)
		last, sent = l, from
	}
}

func (s *sampler) see(l look, again bool, from, to time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.looks > 0 {
		s.pause = max(s.pause, to-s.answered)
	}
	s.looks++
	s.answered = to
	switch {
	case again:
		seen := &s.sightings[len(s.sightings)-1]
		seen.LastSent, seen.LastAnswered = from, to
	case !l.vacant:
		s.sightings = append(s.sightings, coexist.Sighting{
			Owner: l.owner, Old: l.old, Value: l.value, Token: l.token,
			FirstSent: from, FirstAnswered: to, LastSent: from, LastAnswered: to,
		})
	}
}

// whose tells of a text in the store whose it is: of ours, by the value that
// every term has for itself, or of an old lock.
func whose(text string) (owner string, old bool) {
	value := text
	if rec := kv.Decode(text); !rec.Foreign {
		value = rec.Value
	}
	if strings.HasPrefix(value, "new") {
		owner, _, _ = strings.Cut(value, "/")
		return owner, false
	}
	return legible(text), true
}

// sampleRedis looks with GET and PTTL.
func sampleRedis(addr, key string) *sampler {
	client := redis.NewClient(&redis.Options{Addr: addr, DialTimeout: patience, ReadTimeout: patience, PoolTimeout: patience})
	return &sampler{look: func(ctx context.Context) (look, error) {
		var text *redis.StringCmd
		var left *redis.DurationCmd
		_, err := client.TxPipelined(ctx, func(pipe redis.Pipeliner) error {
			text, left = pipe.Get(ctx, key), pipe.PTTL(ctx, key)
			return nil
		})
		if errors.Is(err, redis.Nil) {
			return look{vacant: true}, nil
		}
		if err != nil {
			return look{}, err
		}
		l := look{value: text.Val(), left: max(0, left.Val())}
		l.owner, l.old = whose(l.value)
		return l, nil
	}}
}

// sampleConsul looks with KV().Get. A session has a name, which says who made it.
func sampleConsul(addr, key string) (*sampler, error) {
	client, err := part{Addr: addr}.consul()
	if err != nil {
		return nil, err
	}
	names := map[string]string{} // of sessions
	info := func(ctx context.Context, session string) (*api.SessionEntry, error) {
		entry, _, err := client.Session().Info(session, (&api.QueryOptions{RequireConsistent: true}).WithContext(ctx))
		return entry, err
	}
	s := &sampler{}
	s.alive = func(ctx context.Context, session string) (bool, error) {
		entry, err := info(ctx, session)
		return entry != nil, err
	}
	s.look = func(ctx context.Context) (look, error) {
		pair, _, err := client.KV().Get(key, (&api.QueryOptions{RequireConsistent: true}).WithContext(ctx))
		if err != nil {
			return look{}, err
		}
		if pair == nil || pair.Session == "" {
			return look{vacant: true}, nil
		}
		l := look{value: string(pair.Value), lease: pair.Session}
		if l.owner, l.old = whose(l.value); !l.old {
			return l, nil
		}
		if _, known := names[pair.Session]; !known {
			entry, err := info(ctx, pair.Session)
			if err != nil {
				return look{}, err
			}
			if entry == nil { // it has ended since
				return look{vacant: true}, nil
			}
			names[pair.Session] = entry.Name
		}
		l.owner = names[pair.Session]
		return l, nil
	}
	return s, nil
}

// sampleEtcd looks at the line with a range read. Its first holds.
func sampleEtcd(client *clientv3.Client, prefix string) *sampler {
	s := &sampler{}
	s.alive = func(ctx context.Context, lease string) (bool, error) {
		id, err := parseLease(lease)
		if err != nil {
			return false, err
		}
		resp, err := client.TimeToLive(ctx, id)
		return err == nil && resp.TTL > 0, err
	}
	s.look = func(ctx context.Context) (look, error) {
		resp, err := client.Get(ctx, prefix+"/", clientv3.WithFirstCreate()...)
		if err != nil {
			return look{}, err
		}
		if len(resp.Kvs) == 0 {
			return look{vacant: true}, nil
		}
		first := resp.Kvs[0]
		l := look{key: string(first.Key), value: string(first.Value), token: uint64(first.CreateRevision), lease: formatLease(clientv3.LeaseID(first.Lease))}
		if l.owner, l.old = whose(l.value); l.old {
			l.owner = string(first.Key)
		} else {
			l.owner = numbered(l.owner, l.token)
		}
		return l, nil
	}
	return s
}

// numbered returns the owner of a record in etcd: a campaign may have to give up
// a place in line, and take another one.
func numbered(owner string, token uint64) string { return fmt.Sprintf("%s#%d", owner, token) }
