package throttle

import (
	"context"
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv"
)

func TestAStoreIsForgottenWithItsLastRequest(t *testing.T) {
	store := memkv.New()
	for range width {
		leave, err := Enter(t.Context(), store)
		require.NoError(t, err)
		defer func() {
			require.Contains(t, kept(), kv.Store(store))
			leave()
		}()
	}
	t.Cleanup(func() { require.NotContains(t, kept(), kv.Store(store)) })
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Enter(gone, store)
	require.Error(t, err)
}

// kept returns the queues that are not empty. Those of other tests may be among them.
func kept() map[kv.Store]*queue {
	mu.Lock()
	defer mu.Unlock()
	return maps.Clone(queues)
}
