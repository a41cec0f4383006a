package rediskv

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

func TestNoKeyBelongsToTwoNames(t *testing.T) {
	s := New(nil, &Options{})
	names := []string{
		"x", "{x}", "{x}:", "{{x}}", "{x", "x{", "{", "{x}y", "y{x}", "{x}::", ":x", "x:", "x::",
		"{x}:election", "x:election-", ":election-fence", "{x}:election-fence", "{x}::election-fence",
		":election-server", "{x}:election-server", "{x}::election-server",
		"}", "{}", "x}", "{}x}", "}{", "}{x}", "{}{x}",
	}
	owners := make(map[string]string)
	for _, name := range names {
		at, err := s.place(name)
		if err != nil {
			require.ErrorIs(t, err, kv.ErrInvalid)
			continue
		}
		for _, key := range []string{at.record, at.counter, at.server} {
			require.NotContains(t, owners, key, "%q has a key of %q", name, owners[key])
			owners[key] = name
		}
	}
	for _, name := range []string{"x", "{x}", "{x", "{x}y", ":x", "}{x}"} {
		require.Equal(t, name, owners[name], "a name that needs no refusal")
	}
}

func TestAPrefixMayHoldTheHashTag(t *testing.T) {
	at, err := New(nil, &Options{Prefix: "{team}/"}).place("jobs}")
	require.NoError(t, err)
	require.Equal(t, place{
		record:  "{team}/jobs}",
		counter: "{team}/jobs}::election-fence",
		server:  "{team}/jobs}::election-server",
		channel: "election:{team}/jobs}",
	}, at)
}
