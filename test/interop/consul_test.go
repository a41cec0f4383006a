//go:build linux

package interop

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/internal/testenv/install"
)

// consulSetup is a fleet in Consul. A dead holder keeps others out for twice the
// TTL and, if it was an old one, for its lock-delay; a client of api.Lock that
// meets a lock-delay sleeps for 5 s. There is no line: where two wait, it is
// mostly the old one who gets the key, since it has its session already, and
// ours make theirs when they see that the key is free.
func consulSetup(lock string) setup {
	return setup{
		lock: lock, store: inConsul, key: "%s", ttl: 2 * time.Second,
		hold:   [2]time.Duration{300 * time.Millisecond, 1500 * time.Millisecond},
		rest:   [2]time.Duration{500 * time.Millisecond, 2 * time.Second},
		surely: 1500 * time.Millisecond,
		dead:   4*time.Second + lockDelay + 5*time.Second, luck: 20,
	}
}

// TestADeadConsulLockKeepsOursOutForItsTimeAndNoLonger is about a command that
// cannot be told a shorter time: its session lasts for up to 30 s, and 15 s of
// lock-delay follow.
func TestADeadConsulLockKeepsOursOutForItsTimeAndNoLonger(t *testing.T) {
	t.Parallel()
	s := consulLockSetup(t)
	s.hold = [2]time.Duration{time.Minute, time.Minute}
	f := newFleet(t, s, testenv.Consul(t))
	f.enter("old-1")
	f.await("consul lock holds", patience, elected("old-1", 0))
	f.enter("new-1", "new-2")
	time.Sleep(s.ttl)
	killed := boottime.Now()
	f.note(history.Event{Kind: history.Killed, Who: "old-1"})
	require.NoError(t, f.actor("old-1").kill())

	const ttl, delay, retry = 15 * time.Second, 15 * time.Second, 2 * time.Second
	first := f.await("one of ours leads", 2*ttl+delay+retry+patience, elected("new", killed))
	require.Greater(t, first.At-killed, delay, "the lock-delay was kept")
	t.Logf("ours led %v after the death of consul lock", (first.At - killed).Round(time.Millisecond))
	require.Less(t, first.At-killed, 2*ttl+delay+retry+machine)
	f.close()
	require.Empty(t, f.story().Judge().Broken)
}

func TestFleetsInConsul(t *testing.T) {
	t.Parallel()
	t.Run("api.Lock", func(t *testing.T) {
		t.Parallel()
		playFleet(t, consulSetup("api.Lock"), testenv.Consul(t))
	})
	t.Run("api.Lock, plain", func(t *testing.T) {
		t.Parallel()
		s := consulSetup("api.Lock")
		s.plain = true
		playFleet(t, s, testenv.Consul(t))
	})
	t.Run("consul lock", func(t *testing.T) {
		t.Parallel()
		playFleet(t, consulLockSetup(t), testenv.Consul(t))
	})
}

// consulLockSetup is a fleet with the command. Its session cannot be told a
// shorter time than 15 s, which a test that goes on for as long cannot wait for:
// see TestADeadConsulLockKeepsOursOutForItsTimeAndNoLonger.
func consulLockSetup(t *testing.T) setup {
	t.Helper()
	path, err := install.Consul.Path(t.Context(), os.Stderr)
	require.NoError(t, err)
	s := consulSetup("consul lock")
	s.command, s.key, s.suffix, s.calm = path, "%s/.lock", "/.lock", true
	return s
}
