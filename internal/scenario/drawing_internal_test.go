package scenario

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/history"
)

// A timeline shows who leads and who is next, and what was done to them; what it
// could not show is refused.
func TestATraceIsDrawn(t *testing.T) {
	h, err := historyOf("" +
		"     0.0s  > candidate a rank 1\n" +
		"     0.0s  a stands\n" +
		"     0.0s  > candidate b\n" +
		"     0.0s  b stands\n" +
		"     1.0s  a is heir\n" +
		"     2.0s  a leads (term 1): the safe was vacant\n" +
		"     3.0s  b is heir\n" +
		"     5.0s  > request resign\n" +
		"     5.0s  a leads no more: resigned: asked to\n" +
		"     5.0s  a does not stand\n" +
		"     5.0s  a stands\n" +
		"     5.0s  b leads (term 2): handed over by a\n" +
		"     5.0s  the asker was heard\n" +
		"     8.0s  > kill b\n" +
		"    10.0s  at the end nobody leads, nobody is next; a has led for 3.0s\n")
	require.NoError(t, err)
	require.Equal(t, ""+
		"a       ··▒▒1█████A··········\n"+
		"b       ······▒▒▒▒2█████K\n"+
		"leader      1█████2██████\n"+
		"        ┬─────────┬─────────┬\n"+
		"        0s        5s        10s\n", history.Timeline(h, 29))
	for _, c := range []struct{ trace, says string }{
		{"soon  a stands\n", `"soon  a stands" is no line of a trace`},
		{"     0.0s  > pause a\n", `cannot draw "     0.0s  > pause a"`},
		{"     0.0s  > restart a\n", `cannot draw`},
		{"     0.0s  > request resign\n", `cannot draw`},
		{"     0.0s  a laughs\n", `cannot draw "     0.0s  a laughs"`},
	} {
		_, err := historyOf(c.trace)
		require.ErrorContains(t, err, c.says)
	}
}
