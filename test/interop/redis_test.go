//go:build linux

package interop

import (
	"testing"
	"time"

	"github.com/electkv/election/internal/testenv"
)

// redisSetup is a fleet in Redis, which tells nobody of what other programs do:
// ours look at the key, as the old ones do.
func redisSetup(lock string) setup {
	s := setup{
		lock: lock, store: inRedis, key: "%s", ttl: 1500 * time.Millisecond, backstop: time.Second,
		hold: [2]time.Duration{200 * time.Millisecond, 900 * time.Millisecond},
		rest: [2]time.Duration{500 * time.Millisecond, 2 * time.Second},
		dead: 1500 * time.Millisecond, luck: 10, surely: 2 * time.Second,
		notice: 1500 * time.Millisecond, // its trust has run out by then, if nothing told it before
	}
	switch lock {
	case "rueidislock":
		s.key, s.pref = rueidisKey("%s"), rueidisKey("")
	case "SET NX PX and DEL":
		s.hold[1] = s.ttl * 5 / 4 // the work sometimes takes longer than it should
	}
	return s
}

func TestFleetsInRedis(t *testing.T) {
	t.Parallel()
	for _, lock := range []string{"redsync", "redislock", "redislock with a fence", "rueidislock", "SET NX PX and Lua", "SET NX PX and DEL"} {
		t.Run(lock, func(t *testing.T) {
			t.Parallel()
			playFleet(t, redisSetup(lock), testenv.Redis(t))
		})
	}
	for _, lock := range []string{"redislock", "SET NX PX and DEL"} {
		t.Run(lock+", plain", func(t *testing.T) {
			t.Parallel()
			s := redisSetup(lock)
			s.plain = true
			playFleet(t, s, testenv.Redis(t))
		})
	}
	// With keyspace events a look now and then is not needed.
	t.Run("SET NX PX and DEL, with events", func(t *testing.T) {
		t.Parallel()
		s := redisSetup("SET NX PX and DEL")
		s.backstop = time.Minute
		playFleet(t, s, testenv.StartRedis(t, "--notify-keyspace-events", "Kg$xe").Addr())
	})
}
