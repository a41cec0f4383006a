package main

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv"
)

func TestEachMemberLeadsOnce(t *testing.T) {
	peers := []string{testenv.FreeAddr(t), testenv.FreeAddr(t), testenv.FreeAddr(t)}
	require.NoError(t, run(t.Context(), t.TempDir(), peers, lead), "which it returns when each has led")
}

func TestAllMembersStopWhenTheyAreTold(t *testing.T) {
	peers := []string{testenv.FreeAddr(t), testenv.FreeAddr(t), testenv.FreeAddr(t)}
	ctx, stop := context.WithCancelCause(t.Context())
	told := errors.New("told")
	var terms atomic.Int32
	err := run(ctx, t.TempDir(), peers, func(ctx context.Context, _ int) error {
		terms.Add(1)
		stop(told)
		<-ctx.Done()
		return nil
	})
	require.Equal(t, told, err)
	require.EqualValues(t, 1, terms.Load(), "nobody leads after that")
}
