package rediskv

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

// unused returns a client that nobody asks anything.
func unused(t *testing.T) *redis.Client {
	t.Helper()
	client := redis.NewClient(&redis.Options{})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}

func TestNoKeyBelongsToTwoNames(t *testing.T) {
	for _, plain := range []bool{false, true} {
		noKeyBelongsToTwoNames(t, plain)
	}
}

func noKeyBelongsToTwoNames(t *testing.T, plain bool) {
	t.Helper()
	s := New(unused(t), &Options{Plain: plain})
	names := []string{
		"x", "{x}", "{x}:", "{{x}}", "{x", "x{", "{", "{x}y", "y{x}", "{x}::", ":x", "x:", "x::",
		"{x}:election", "x:election-", ":election-fence", "{x}:election-fence", "{x}::election-fence",
		":election-server", "{x}:election-server", "{x}::election-server",
		":election-record", "{x}:election-record", "{x}::election-record",
		"}", "{}", "x}", "{}x}", "}{", "}{x}", "{}{x}",
	}
	owners := make(map[string]string)
	for _, name := range names {
		at, err := s.place(name)
		if err != nil {
			require.ErrorIs(t, err, kv.ErrInvalid)
			continue
		}
		keys := []string{at.record, at.counter, at.server}
		if plain {
			keys = append(keys, at.text)
		}
		for _, key := range keys {
			require.NotContains(t, owners, key, "%q has a key of %q", name, owners[key])
			owners[key] = name
		}
	}
	for _, name := range []string{"x", "{x}", "{x", "{x}y", ":x", "}{x}"} {
		require.Equal(t, name, owners[name], "a name that needs no refusal")
	}
}

func TestAPrefixMayHoldTheHashTag(t *testing.T) {
	at, err := New(unused(t), &Options{Prefix: "{team}/", Plain: true}).place("jobs}")
	require.NoError(t, err)
	require.Equal(t, place{
		record:  "{team}/jobs}",
		text:    "{team}/jobs}::election-record",
		counter: "{team}/jobs}::election-fence",
		server:  "{team}/jobs}::election-server",
		channel: "election:{team}/jobs}",
	}, at)
}

func TestAnEndingIsTakenThoughThePrefixHasABeginningOfIt(t *testing.T) {
	for prefix, name := range map[string]string{
		"{jobs}:election-": "record", "{jobs}:": "election-fence", "{jobs}": ":election-server",
	} {
		_, err := New(unused(t), &Options{Prefix: prefix}).place(name)
		require.ErrorIs(t, err, kv.ErrInvalid, "%q", prefix+name)
	}
}
