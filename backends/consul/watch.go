package consulkv

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/electkv/election/kv"
)

// watch yields what the key holds, and again whenever that has changed. It
// returns nil once the reader has left, and otherwise why it ended.
func (s *Store) watch(ctx context.Context, key string, yield func(kv.Record, error) bool) error {
	last, index, own, err := s.read(ctx, key)
	if err != nil {
		return err
	}
	of := s.subject(key)
	watched := s.conns.join(of, index, own)
	defer s.conns.leave(of)
	if !yield(last.rec, last.vacancy()) {
		return nil
	}
	look := func(ctx context.Context, index uint64) (now entry, reached, next uint64, err error) {
		return s.lookOn(ctx, watched.view, key, index, last)
	}
	for {
		now, err := watched.next(ctx, look)
		if err != nil {
			return err
		}
		if now.rec != last.rec && !yield(now.rec, now.vacancy()) {
			return nil
		}
		last = now
	}
}

func (s *Store) subject(key string) subject {
	return subject{key: key, plain: s.opts.Plain, observed: s.observed}
}

// confirm tells the watches of a key that a refresh has found it unchanged.
func (s *Store) confirm(key string, found version, asked time.Time) {
	s.conns.confirm(s.subject(key), found, asked)
}

// read is a short poll, which comes when it is its turn; where many wait for theirs, together
// with those. It returns what the key holds, the index to look on from, and one that says how
// old this is: what was seen at a larger index is newer.
func (s *Store) read(ctx context.Context, key string) (now entry, index, reached uint64, err error) {
	if s.conns.busy(time.Now()) {
		keys := []string{key}
		if s.opts.Plain {
			keys = append(keys, companion(key))
		}
		found, err := s.conns.readTogether(ctx, s.client, keys...)
		switch {
		case err != nil:
			return entry{}, 0, 0, err
		case len(found) == 2:
			now = decodeBoth(found[0], found[1])
			return now, now.version.key, math.MaxUint64, nil
		case len(found) == 1:
			now = s.decode(found[0])
			return now, now.version.key, math.MaxUint64, nil
		}
	}
	err = s.conns.poll(ctx, func(ctx context.Context) error {
		now, reached, err = s.await(ctx, key, 0, 0)
		return err
	})
	return now, reached, reached, err
}

// lookOn looks at a key that held last at the index: by a blocking query if the client
// has room for one, and otherwise, after a pause, together with other keys. If a refresh has
// looked meanwhile, that is enough. It returns what the key holds, the
// index that this shows, and the one to look on from.
//
// A blocking query may return without a change, as often as it likes: at its end,
// after a write that changed nothing, after a snapshot was restored.
func (s *Store) lookOn(ctx context.Context, v *view, key string, index uint64, last entry) (now entry, reached, next uint64, err error) {
	if long := s.conns.hold(ctx); long != nil {
		wait, start := long.wait(s.backstop(last.rec)), time.Now()
		now, reached, err = s.await(long.ctx, key, index, wait)
		needed := long.needed() || cutOff(ctx, err)
		long.release()
		if err == nil || !needed {
			return now, reached, following(index, reached, time.Since(start) < wait), s.conns.heed(ctx, err)
		}
	}
	before := time.Now()
	if err := sleep(ctx, s.conns.pause()); err != nil {
		return entry{}, 0, 0, err
	}
	if v.confirmedSince(before, last.version) {
		return last, index, index, nil
	}
	same, err := s.conns.unchanged(ctx, s.client, s.unchanged(key, last))
	if err != nil {
		return entry{}, 0, 0, err
	}
	if same {
		return last, index, index, nil
	}
	now, next, _, err = s.read(ctx, key)
	return now, next, next, err
}

// following returns the index to wait at after a query that waited at index. It
// is 0, to begin anew, if the servers' state seems to have been replaced by an
// older one: to wait at an index from before would miss all changes until then.
// Either the index has gone back (Consul's documentation of blocking queries),
// or the query ended early without an index that is new, which is what becomes
// of one that waits while a snapshot is restored.
func following(index, reached uint64, early bool) uint64 {
	if reached < index || reached == index && early {
		return 0
	}
	return reached
}

// answerSlack is what a reply may take beyond the wait of a blocking query.
const answerSlack = 10 * time.Second

// await is one blocking query: it returns what the key holds once its index is
// above the given one, or after wait, or at once if the index is 0; and the
// index that the query reached. It waits for a change of the key alone, which no
// write of this package leaves out, and then reads the companion with it.
func (s *Store) await(ctx context.Context, key string, index uint64, wait time.Duration) (entry, uint64, error) {
	limit := answerSlack
	if index > 0 { // a server waits up to a sixteenth longer, so that queries spread
		limit += wait + wait/16
	}
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	query := &api.QueryOptions{RequireConsistent: true, WaitIndex: index, WaitTime: wait}
	traced, connected := traceConnection(bounded, s.conns.starved)
	pair, meta, err := s.client.KV().Get(key, query.WithContext(traced))
	connected()
	now := s.decode(pair)
	if err == nil && s.opts.Plain {
		now, err = s.look(bounded, key)
	}
	switch {
	case err == nil:
		return now, meta.LastIndex, nil
	case bounded.Err() != nil && ctx.Err() == nil:
		return entry{}, 0, fmt.Errorf("no answer within %v", limit)
	}
	return entry{}, 0, err
}

// backstop returns how long to wait at a key that holds rec. Should the
// connection be dead and the record's owner too, then the watch sees the vacancy
// not much later than it came.
func (s *Store) backstop(rec kv.Record) time.Duration {
	if rec.Foreign || rec.TTL == 0 {
		return s.opts.Backstop
	}
	return min(s.opts.Backstop, max(2*rec.TTL, 10*time.Second))
}
