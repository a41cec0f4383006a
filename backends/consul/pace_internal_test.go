package consulkv

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAPaceLetsRareTurnsRunFree(t *testing.T) {
	var p pace
	now := time.Now()
	for range 1000 {
		require.Zero(t, p.turn(now, paceBurst, paceEvery))
		now = now.Add(paceEvery)
	}
	for range paceBurst {
		require.Zero(t, p.turn(now, paceBurst, paceEvery), "a burst after a calm")
	}
}

func TestAPaceSlowsDownAnEagerLoop(t *testing.T) {
	var p pace
	start := time.Now()
	now := start
	const turns = 100
	for range turns {
		now = now.Add(p.turn(now, paceBurst, paceEvery))
	}
	require.Equal(t, (turns-paceBurst)*paceEvery, now.Sub(start))
}
