package boottime_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/boottime"
)

func TestNowGoesOn(t *testing.T) {
	before := boottime.Now()
	time.Sleep(20 * time.Millisecond)
	require.GreaterOrEqual(t, boottime.Now()-before, 20*time.Millisecond)
}

func TestAConvertedInstantIsNeverLate(t *testing.T) {
	c := boottime.NewConverter()
	for range 50 {
		before := boottime.Now()
		in := c.Convert(time.Now().Add(time.Minute))
		after := boottime.Now()
		require.LessOrEqual(t, in, after+time.Minute)
		require.Greater(t, in, before+time.Minute-time.Second, "early by far more than reading two clocks takes")
		time.Sleep(time.Millisecond)
	}
}
