package simulation

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/seam"
	"github.com/electkv/election/internal/sim"
)

// Repeat looks whether a failure repeats, as a rule: in two runs of one schedule the same happens at the same
// nanoseconds. What a candidate's goroutines do within one nanosecond is in no order, and Go
// offers no way to fix it: in one to three of these schedules goroutines wake together
// after a pause, or a select finds two channels ready, and the histories part there.
func Repeat(t *testing.T, engine seam.Engine) {
	const schedules, most = 40, 6
	draw := rapid.Custom(drawSchedule)
	differ := 0
	for seed := range schedules {
		s := draw.Example(seed)
		s.Succession = sim.Succession{} // an heir has several watches, which may be told at one instant
		first, second := plain(Record(t, engine, 0, s, Real)), plain(Record(t, engine, 0, s, Real))
		if !slices.Equal(first, second) {
			differ++
		}
	}
	t.Logf("%d of %d differ", differ, schedules)
	require.LessOrEqual(t, differ, most, "of %d", schedules)
}

// plain leaves out what differs from run to run.
func plain(h history.History) []string {
	events := []string{}
	for _, e := range h.Events {
		e.Signature, e.Next, e.Call = "", "", 0
		events = append(events, fmt.Sprintf("%20d %+v", e.At, e))
	}
	slices.Sort(events)
	return events
}
