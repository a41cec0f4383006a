//go:build linux

package faults

import (
	"context"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/testenv"
)

// redisRows are about what only Redis has.
func redisRows() []row {
	all := []row{}
	all = append(all, redisRecordRows()...)
	all = append(all, redisServerRows()...)
	all = append(all, redisAccessRows()...)
	all = append(all, redisLossRows()...)
	all = append(all, redisClusterRows()...)
	all = append(all, redisDiskRows()...)
	return all
}

// onRedis is for rows about all columns of Redis.
func onRedis(why string) func(column) string {
	return on(why, kindRedis, kindSentinel, kindCluster)
}

// operator returns a client of one server, which uses no links. It is nobody's
// but the stage's: it needs no password.
func (s *stage) operator(node *testenv.Server) *redis.Client {
	client := redis.NewClient(&redis.Options{Addr: node.Addr(), MaxRetries: -1, ContextTimeoutEnabled: true})
	s.t.Cleanup(func() { client.Close() })
	return client
}

// primary returns a client of the server that keeps the record.
func (s *stage) primary() *redis.Client { return s.operator(s.servers.leader(s.name)) }

// everywhere has an operator do something on all servers.
func (s *stage) everywhere(words ...any) {
	s.t.Helper()
	for _, node := range s.nodes {
		require.NoError(s.t, s.operator(node).Do(s.t.Context(), words...).Err())
	}
}

// eventually waits for a condition. That it comes true is no promise.
func (s *stage) eventually(what string, ok func(ctx context.Context) bool) {
	s.t.Helper()
	require.Eventually(s.t, func() bool { return ok(s.t.Context()) }, s.takeover()+patience, 10*time.Millisecond, what)
}

// hears waits until a candidate has complained of an error.
func (s *stage) hears(who, text string) {
	s.t.Helper()
	s.eventually(who+" hears of "+text, func(context.Context) bool {
		return strings.Contains(s.actor(who).said.String(), text)
	})
}

// stale demands that the fence has refused writes: that of two leaders one was
// the old one.
func (s *stage) stale() {
	s.t.Helper()
	require.NotEmpty(s.t, s.events().Of("", history.Refused), "the fence had nothing to refuse")
}
