package leak

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAGoroutineThatIsLeftBehindIsFound(t *testing.T) {
	before := Before()
	end := make(chan struct{})
	go func() { <-end }()
	require.Contains(t, before.left(20*time.Millisecond), "TestAGoroutineThatIsLeftBehindIsFound")
	require.Empty(t, Before().left(0), "it was there before")
	close(end)
	require.Empty(t, before.left(patience))
}

func TestAGoroutineMayTakeAMomentToEnd(t *testing.T) {
	before := Before()
	go time.Sleep(50 * time.Millisecond)
	require.Empty(t, before.left(patience))
	before.Check(t)
}
