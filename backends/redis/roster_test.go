package rediskv_test

import (
	"crypto/rand"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	rediskv "github.com/electkv/election/backends/redis"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// The set of a roster does not grow for ever, though nobody reads it and no member leaves in order.
func TestWhoEntersARosterStrikesOffTheDead(t *testing.T) {
	client := dial(t, testenv.Redis(t))
	store := rediskv.New(client, nil)
	roster := "roster-" + rand.Text()
	set := "{" + roster + "}:election-roster"
	t.Cleanup(func() { client.Del(t.Context(), set, set+":election-fence") })
	enters := func(i int, ttl time.Duration) kv.Record {
		key := fmt.Sprint("k", i)
		rec, err := store.Create(t.Context(), kv.MemberName(roster, key), kv.Record{Signature: "x/" + key, TTL: ttl})
		require.NoError(t, err)
		return rec
	}
	lives := enters(0, time.Minute)
	for i := 1; i <= 400; i++ {
		enters(i, time.Millisecond)
		time.Sleep(2 * time.Millisecond)
	}
	size, err := client.ZCard(t.Context(), set).Result()
	require.NoError(t, err)
	require.Less(t, size, int64(40))
	all, _, err := store.Members(t.Context(), roster, 100)
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, lives, all[0].Record)
	require.NoError(t, store.Delete(t.Context(), all[0].Name, lives))
	require.ErrorIs(t, client.ZScore(t.Context(), set, "k0").Err(), redis.Nil)
}

func TestARosterWhoseKeyIsAnothersSaysSo(t *testing.T) {
	client := dial(t, testenv.Redis(t))
	store := rediskv.New(client, nil)
	roster := "roster-" + rand.Text()
	set := "{" + roster + "}:election-roster"
	require.NoError(t, client.Set(t.Context(), set, "somebody's", time.Minute).Err())
	name := kv.MemberName(roster, "a")
	_, err := store.Create(t.Context(), name, kv.Record{Signature: "x/a", TTL: time.Minute})
	require.ErrorContains(t, err, set)
	_, err = store.Get(t.Context(), name)
	require.ErrorIs(t, err, kv.ErrVacant, "nothing was done")
	_, _, err = store.Members(t.Context(), roster, 10)
	require.ErrorContains(t, err, set)
	require.Equal(t, "somebody's", client.Get(t.Context(), set).Val())
	_, err = store.Get(t.Context(), set+":a")
	require.ErrorIs(t, err, kv.ErrInvalid, "such a name is a member's")
}
