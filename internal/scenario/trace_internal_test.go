package scenario

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// The trace is the same whoever comes to write first.
func TestATraceIsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := &trace{began: time.Now()}
		tr.add(turnCommand, "> candidate b")
		tr.add(turnRole, "b stands")
		tr.add(turnRole, "a stands")
		tr.add(turnCommand, "> kill c")
		tr.add(turnLeads, "b leads")
		tr.add(turnEnd, "a leads no more")
		time.Sleep(1234 * time.Millisecond)
		tr.add(turnEnd, "b leads no more")
		require.Equal(t, ""+
			"     0.0s  > candidate b\n"+
			"     0.0s  a stands\n"+
			"     0.0s  b stands\n"+
			"     0.0s  > kill c\n"+
			"     0.0s  a leads no more\n"+
			"     0.0s  b leads\n"+
			"     1.2s  b leads no more\n", tr.String())
	})
}

func TestTracesAreTheSameIfOnlyAMomentIsNot(t *testing.T) {
	const trace = "     1.0s  > cut b\n     9.9s  b leads\n    10.0s  a stands\n    12.0s  at the end b leads, nobody for 3.7s\n"
	for _, same := range []string{
		trace,
		"     1.0s  > cut b\n    10.0s  a stands\n    10.0s  b leads\n    12.0s  at the end b leads, nobody for 3.6s\n",
	} {
		require.True(t, sameTrace(trace, same), same)
	}
	for _, other := range []string{
		"",
		strings.ReplaceAll(trace, "9.9s", "9.7s"),
		strings.ReplaceAll(trace, "3.7s", "3.5s"),
		strings.ReplaceAll(trace, "a stands", "c stands"),
		strings.ReplaceAll(trace, "    10.0s  a stands\n", ""),
		trace + "    10.0s  a stands\n",
	} {
		require.False(t, sameTrace(trace, other), other)
	}
}
