//go:build unix

package testenv_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv"
)

func TestConsulTakesSettings(t *testing.T) {
	server := testenv.StartConsul(t, map[string]any{"limits": map[string]any{"kv_max_value_size": 1000}})
	require.ErrorContains(t, putConsul(within(t), server.Addr(), "k", strings.Repeat("x", 2000)), "413")
	require.NoError(t, putConsul(within(t), server.Addr(), "k", "small"))
}
