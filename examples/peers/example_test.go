package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv"
)

func TestEachMemberLeadsOnce(t *testing.T) {
	peers := []string{testenv.FreeAddr(t), testenv.FreeAddr(t), testenv.FreeAddr(t)}
	require.NoError(t, run(t.Context(), t.TempDir(), peers), "which it returns when each has led")
}
