package throttle

import (
	"context"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/backends/mem"
)

func TestAStoreIsForgottenWithItsLastRequest(t *testing.T) {
	store := memkv.New()
	for range width {
		leave, err := Enter(t.Context(), store)
		require.NoError(t, err)
		defer func() {
			require.Contains(t, kept(), class{store: store})
			leave()
		}()
	}
	t.Cleanup(func() { require.NotContains(t, kept(), class{store: store}) })
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Enter(gone, store)
	require.Error(t, err)
}

// kept returns the queues that are not empty. Those of other tests may be among them.
func kept() map[class]*queue {
	mu.Lock()
	defer mu.Unlock()
	return maps.Clone(queues)
}
