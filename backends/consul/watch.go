package consulkv

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/electkv/election/kv"
)

// watch yields what the key holds, and again whenever that has changed. It
// returns nil once the reader has left, and otherwise why it ended.
func (s *Store) watch(ctx context.Context, key string, yield func(kv.Record, error) bool) error {
	last, index, err := s.read(ctx, key)
	if err != nil {
		return err
	}
	of := subject{key: key, plain: s.opts.Plain, observed: s.observed}
	watched := s.conns.join(of, index)
	defer s.conns.leave(of)
	if !yield(last.rec, last.vacancy()) {
		return nil
	}
	look := func(ctx context.Context, index uint64) (now entry, reached, next uint64, err error) {
		return s.lookOn(ctx, key, index, last.rec)
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

// read is a short poll, which comes when it is its turn.
func (s *Store) read(ctx context.Context, key string) (now entry, reached uint64, err error) {
	err = s.conns.poll(ctx, func(ctx context.Context) error {
		now, reached, err = s.await(ctx, key, 0, 0)
		return err
	})
	return now, reached, err
}

// lookOn looks at a key that held rec at the index: by a blocking query if the client
// has room for one, and otherwise by a short poll. It returns what the key holds, the
// index that this shows, and the one to look on from.
//
// A blocking query may return without a change, as often as it likes: at its end,
// after a write that changed nothing, after a snapshot was restored.
func (s *Store) lookOn(ctx context.Context, key string, index uint64, rec kv.Record) (now entry, reached, next uint64, err error) {
	if long := s.conns.hold(ctx); long != nil {
		wait, start := long.wait(s.backstop(rec)), time.Now()
		now, reached, err = s.await(long.ctx, key, index, wait)
		needed := long.needed() || cutOff(ctx, err)
		long.release()
		if err == nil || !needed {
			return now, reached, following(index, reached, time.Since(start) < wait), s.conns.heed(ctx, err)
		}
	}
	if err := sleep(ctx, pollPause()); err != nil {
		return entry{}, 0, 0, err
	}
	now, reached, err = s.read(ctx, key)
	return now, reached, reached, err
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
