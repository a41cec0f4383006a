//go:build linux

package interop

import (
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/internal/boottime"
	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/testenv"
)

// machine is what a machine with much else to do may add to a time that is
// promised.
const machine = 10 * time.Second

// await waits until something has happened, and returns it.
func (f *fleet) await(what string, patience time.Duration, cue func(history.Event) bool) history.Event {
	f.t.Helper()
	e, _, ok := f.past.Await(0, patience, cue)
	if !ok {
		f.t.Logf("%s\n%s", f.about.Command, history.Timeline(f.events(), 150))
		require.Fail(f.t, "it does not happen: "+what)
	}
	return e
}

func elected(who string, after time.Duration) func(history.Event) bool {
	return func(e history.Event) bool {
		return e.Kind == history.Elected && strings.HasPrefix(e.Who, who) && e.At > after
	}
}

// TestAKeyWithoutExpiryIsReportedAndNeverStolen is about SETNX whose EXPIRE never
// came: whoever did it died in between.
func TestAKeyWithoutExpiryIsReportedAndNeverStolen(t *testing.T) {
	t.Parallel()
	s := redisSetup("SETNX without its EXPIRE")
	f := newFleet(t, s, testenv.Redis(t))
	f.enter("old-1")
	stuck := f.await("SETNX", patience, elected("old-1", 0))
	f.note(history.Event{Kind: history.Killed, Who: "old-1"})
	require.NoError(t, f.actor("old-1").kill())

	f.enter("new-1", "new-2")
	const warning = "waiting for a record that this library did not write and that never expires"
	var said string
	require.Eventually(t, func() bool {
		said = f.actor("new-1").said.String() + f.actor("new-2").said.String()
		return strings.Contains(said, warning)
	}, patience, 10*time.Millisecond, "the heir's log says it")
	require.Contains(t, said, "value="+stuck.Value)

	leader, err := election.Current(t.Context(), f.store, f.name)
	require.NoError(t, err)
	require.Equal(t, election.Leader{Value: stuck.Value, Foreign: true}, leader)
	rec, err := f.store.Get(t.Context(), f.name)
	require.NoError(t, err)
	require.True(t, rec.Foreign)
	require.True(t, rec.Permanent)

	time.Sleep(4 * s.ttl) // nobody takes it, however long it stays
	client := redis.NewClient(&redis.Options{Addr: f.addr})
	defer client.Close()
	text, err := client.Get(t.Context(), f.at).Result()
	require.NoError(t, err)
	require.Equal(t, stuck.Value, text)
	left, err := client.TTL(t.Context(), f.at).Result()
	require.NoError(t, err)
	require.Equal(t, time.Duration(-1), left, "nor was it given an expiry")
	f.mu.Lock()
	require.True(t, f.seen[len(f.seen)-1].leader == leader && len(f.seen) <= 2, "the watch says the same: %v", f.seen)
	f.mu.Unlock()
	for _, e := range f.events().Events {
		require.False(t, elected("new", 0)(e), "%s was elected", e.Who)
	}

	removed := boottime.Now()
	require.NoError(t, client.Del(t.Context(), f.at).Err())
	first := f.await("one of ours leads when the key was removed by hand", patience, elected("new", removed))
	late := first.At - removed - s.backstop // ours look once a backstop, and then stand
	t.Logf("ours led %v after a backstop", late.Round(time.Millisecond))
	require.Less(t, late, machine)
	f.close()
	require.Empty(t, f.story().Judge().Broken)
}
