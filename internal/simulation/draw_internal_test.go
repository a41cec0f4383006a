package simulation

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/electkv/election/internal/sim"
)

func TestAScheduleIsReadAsItIsPrinted(t *testing.T) {
	s := rapid.Custom(drawSchedule).Example(7)
	parsed, err := sim.Parse(s.String())
	require.NoError(t, err)
	require.Equal(t, s, parsed)
}
