//go:build linux

package faults

import (
	"bytes"
	"context"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
	"github.com/electkv/election/internal/testenv"
)

// redisRecordRows touch a record, and the requests about it.
func redisRecordRows() []row {
	return []row{
		{
			number: 27, fault: "requests arrive twice", times: 3, part: withoutHeir, only: onRedis("its client does not repeat requests that change something"),
			must: []oracle.Rule{oracle.LeaderKept, oracle.LeaderInTime},
			play: arriveTwice,
		},
		{
			number: 33, letter: "b", fault: "record overwritten, its expiry kept", times: 3, only: and(onRedis("a value has no expiry of its own"), ownExpiry),
			must: []oracle.Rule{oracle.ForeignUnharmed, oracle.LeaderInTime},
			play: func(s *stage) {
				first := s.alive()
				s.awaitOf(first.Who, history.Extended) // most of the TTL is left
				const value = "somebody else's value"
				client, ctx := s.redis(), s.t.Context()
				since := boottime.Now()
				s.note(history.Event{Kind: history.Placed, Value: value})
				require.NoError(s.t, client.Set(ctx, s.name, value, redis.KeepTTL).Err())
				expiry := client.PExpireTime(ctx, s.name).Val()
				s.deposed(first, since)
				s.unharmed()
				require.Equal(s.t, expiry, client.PExpireTime(ctx, s.name).Val(), "nobody refreshes it")
				s.nobody(since, 0)
				s.due("", s.takeover(), "the foreign record is about to expire")
				s.leader()
			},
		},
		{
			number: 34, letter: "a", fault: "expiry changed within a term", times: 3, only: and(onRedis("operators do not change expiries"), ownExpiry),
			must: []oracle.Rule{oracle.LeaderKept, oracle.LeaderInTime},
			play: changeExpiry,
		},
		{
			number: 34, letter: "d", fault: "record given an expiry within a term", times: 3, only: and(onRedis("operators do not change expiries"), byCandidates),
			must: []oracle.Rule{oracle.LeaderKept, oracle.LeaderInTime},
			play: giveExpiry,
		},
		{
			number: 34, letter: "b", fault: "record expired at once", times: 2, part: quietly, only: onRedis("operators do not change expiries"),
			must: []oracle.Rule{oracle.LeaderInTime},
			play: func(s *stage) {
				first := s.alive()
				since := boottime.Now()
				s.interfered(s.notice(), "the record is made to expire")
				require.NoError(s.t, s.redis().PExpire(s.t.Context(), s.name, time.Millisecond).Err())
				s.deposed(first, since)
				s.due("", s.vacancy(), "the record expired")
				s.leader()
			},
		},
		{
			number: 34, letter: "c", fault: "expiry taken away after the leader was killed", part: withoutHeir, only: and(onRedis("operators do not change expiries"), ownExpiry),
			must: []oracle.Rule{oracle.LeaderInTime},
			play: func(s *stage) {
				first := s.alive()
				s.kill(first.Who)
				s.fault("PERSIST")
				require.True(s.t, s.redis().Persist(s.t.Context(), s.name).Val())
				since := boottime.Now()
				s.hears(s.others(first.Who)[0], "whose expiry was taken away")
				s.nobody(since, 2*s.ttl)
				s.gone()
			},
		},
		{
			number: 35, letter: "c", fault: "a key of another type", part: withoutHeir, only: onRedis("its values have no types"),
			must: []oracle.Rule{oracle.ForeignUnharmed, oracle.LeaderInTime},
			play: becomeList,
		},
		{
			number: 36, fault: "FLUSHDB and FLUSHALL", own: true, times: 2, part: quietly, only: onRedis("it has no command to forget everything"),
			must: []oracle.Rule{oracle.LeaderInTime},
			play: func(s *stage) {
				for _, flush := range []string{"flushdb", "flushall"} {
					first := s.alive()
					since := boottime.Now()
					s.interfered(s.notice(), flush)
					require.NoError(s.t, s.primary().Do(s.t.Context(), flush).Err())
					s.deposed(first, since)
					s.due("", s.vacancy(), flush)
					s.leader()
				}
			},
		},
	}
}

// arriveTwice has the server carry out everything twice, and the client see the
// second answer only: during a term, and at a handover. A create that arrives
// twice is refused, since its record is there.
func arriveTwice(s *stage) {
	twice := func(text string, match func(request []byte) bool, names ...string) (n *atomic.Int32) {
		n = new(atomic.Int32)
		for _, who := range names {
			creates := new(atomic.Int32)
			s.links(text, func(p *testenv.Proxy) {
				p.Replay(func(request []byte) bool {
					if !bytes.Contains(bytes.ToLower(request), []byte("eval")) || !match(request) {
						return false
					}
					if hasRecord(request) && creates.Add(1) > 1 {
						return false // a candidate that always does that could never be elected
					}
					n.Add(1)
					return true
				})
			}, who)
		}
		return n
	}
	first := s.alive()
	s.keep(first, 2*s.ttl)
	all := twice("says everything twice", func([]byte) bool { return true }, s.names...)
	s.pass(2 * s.ttl)
	require.GreaterOrEqual(s.t, all.Load(), int32(5))
	s.due(first.Who, s.release(), "its end")
	// The first record that one of them sends is in its create.
	creates := twice("asks for the safe twice", hasRecord, s.others(first.Who)...)
	s.tell(first.Who, "close")
	s.leader(first.Who)
	require.Positive(s.t, creates.Load())
	s.pass(s.ttl)
}

// hasRecord tells the requests from the others that have a new record in them:
// a create, and what a leader proclaims.
func hasRecord(request []byte) bool { return bytes.Contains(request, []byte(`"election":1`)) }

// changeExpiry meddles with the expiry of a record whose leader lives. Each
// refresh puts it right.
func changeExpiry(s *stage) {
	first := s.alive()
	client := s.redis()
	left := func(ctx context.Context) time.Duration { return client.PTTL(ctx, s.name).Val() }
	s.awaitOf(first.Who, history.Extended)
	s.keep(first, 3*s.ttl/2)
	s.fault("the expiry is brought forward, beyond the next refresh")
	require.True(s.t, client.PExpire(s.t.Context(), s.name, s.ttl*2/3).Val())
	require.LessOrEqual(s.t, left(s.t.Context()), s.ttl*2/3)
	s.eventually("the expiry is as it was", func(ctx context.Context) bool { return left(ctx) > s.ttl*2/3 })

	s.fault("the expiry is put off")
	require.True(s.t, client.PExpire(s.t.Context(), s.name, time.Hour).Val())
	require.Greater(s.t, left(s.t.Context()), s.ttl)
	s.eventually("the expiry is as it was", func(ctx context.Context) bool { return left(ctx) <= s.ttl })

	s.fault("the expiry is taken away")
	require.True(s.t, client.Persist(s.t.Context(), s.name).Val())
	s.eventually("the expiry is as it was", func(ctx context.Context) bool { return left(ctx) > 0 })
	s.pass(s.ttl)
	s.due(first.Who, s.takeover(), "SIGKILL")
	s.kill(first.Who)
	s.leader(first.Who)
}

// giveExpiry has the server end the record by itself, after the next refresh. That
// takes the expiry away.
func giveExpiry(s *stage) {
	first := s.alive()
	client := s.redis()
	s.awaitOf(first.Who, history.Extended)
	s.keep(first, 2*s.ttl)
	s.fault("the record is given an expiry")
	require.True(s.t, client.PExpire(s.t.Context(), s.name, s.ttl*2/3).Val())
	s.eventually("the record has none", func(ctx context.Context) bool { return client.PTTL(ctx, s.name).Val() < 0 })
	s.pass(2 * s.ttl)
	s.due(first.Who, s.takeover(), "SIGKILL")
	s.kill(first.Who)
	s.leader(first.Who)
}

// becomeList puts a list in the place of the record.
func becomeList(s *stage) {
	first := s.alive()
	since := boottime.Now()
	list := []string{"one", "two"}
	client := s.redis()
	s.note(history.Event{Kind: history.Placed, Value: strings.Join(list, " ")})
	_, err := client.TxPipelined(s.t.Context(), func(p redis.Pipeliner) error {
		p.Del(s.t.Context(), s.name)
		p.RPush(s.t.Context(), s.name, list)
		return nil
	})
	require.NoError(s.t, err)
	s.deposed(first, since)
	for _, who := range s.names {
		s.hears(who, "that this library did not write and that never expires")
	}
	s.nobody(since, 2*s.ttl)
	found, err := client.LRange(s.t.Context(), s.name, 0, -1).Result()
	require.NoError(s.t, err)
	s.note(history.Event{Kind: history.Found, Value: strings.Join(found, " ")})
	s.gone()
}
