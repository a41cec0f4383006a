package machine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/machine"
)

func TestTrustEndsASpanAfterTheSendOnTheFasterClock(t *testing.T) {
	at := func(mono, boot time.Duration) machine.Instant { return machine.Instant{Mono: mono, Boot: boot} }
	trust := machine.Trust{Sent: at(0, 100*time.Second), Span: 9 * time.Second}

	require.Equal(t, 9*time.Second, trust.Left(at(0, 100*time.Second)))
	require.Equal(t, 4*time.Second, trust.Left(at(5*time.Second, 105*time.Second)))
	require.Equal(t, -time.Second, trust.Left(at(0, 110*time.Second)), "suspended: the monotonic clock stood still")
	require.Equal(t, 4*time.Second, trust.Left(at(5*time.Second, 40*time.Second)), "a clock that went back gives no time back")
}
