//go:build unix

package testenv_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv"
)

func TestEtcdTakesFlags(t *testing.T) {
	server := testenv.StartEtcd(t, "--max-request-bytes=1000")
	require.ErrorContains(t, putEtcd(within(t), server.Addr(), "k", strings.Repeat("x", 2000)), "request is too large")
	require.NoError(t, putEtcd(within(t), server.Addr(), "k", "small"))
}
