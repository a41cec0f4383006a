package election

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTroubleIsToldOnceAMinuteAndNotOfEveryConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c complaint
		first, second := errors.New("connection refused"), errors.New("reset by peer")
		require.True(t, c.due(first))
		require.True(t, c.due(second))
		require.False(t, c.due(first), "it is not new, though it is not the last one")
		told := 0
		for port := range 20 {
			if c.due(fmt.Errorf("read from port %d: reset by peer", port)) {
				told++
			}
		}
		require.Equal(t, mostSaid-2, told)
		time.Sleep(sayAgain)
		require.True(t, c.due(first), "it goes on for long")
	})
}
