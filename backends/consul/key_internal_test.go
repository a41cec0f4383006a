package consulkv

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

func TestKeysThatWouldNotArriveAsTheyAreAreRefused(t *testing.T) {
	for _, key := range []string{
		"a.election", ".election", "/", "/a", "a//b", "a//", ".", "..", "a/..", "a/../b", "a/./b", "./a", "../a",
		"\n", "a\x00", "a\x7f", "\xff", "a\u200b", "a\u00a0b", strings.Repeat("a", longestKey+1),
	} {
		require.ErrorIs(t, checkKey(key), kv.ErrInvalid, "%.80q", key)
	}
	for _, key := range []string{
		"a", "a/", "a/b", "a b", "election", "a.election.b", "a.election/b", " ", "a.", "..a", "a..b", ".lock", "a/.lock", "%2F", "a?b=c#d", "+", "\\", `"`,
		"ключ", "漢字", "🗝", "e\u0301", "\ufffd", strings.Repeat("a", longestKey),
	} {
		require.NoError(t, checkKey(key), "%.80q", key)
	}
}
