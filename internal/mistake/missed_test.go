package mistake_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/mistake"
)

func TestAMistakeThatIsMissedSaysHowToLookAgain(t *testing.T) {
	t.Run("trust counts (too long)", func(t *testing.T) {
		again := mistake.Again(t)
		require.Equal(t, `go test -count=1 -run '^TestAMistakeThatIsMissedSaysHowToLookAgain$/^trust_counts_\(too_long\)$' github.com/electkv/election/internal/mistake`, again)
		said := mistake.Report("in 300 schedules", again)
		require.Contains(t, said, "This is a test of the tests.")
		require.Contains(t, said, "not found: in 300 schedules.")
		require.Contains(t, said, "\nagain: "+again)
	})
}
