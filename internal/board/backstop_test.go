package board_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/board"
	"github.com/electkv/election/kv"
)

func TestTheMoreSafesAreFollowedTheLongerAreTheyLeftAlone(t *testing.T) {
	held := kv.Record{Signature: "a", Token: 1}
	b := board.New(0, func(string, *board.Topic) (board.Look, func(), error) {
		return func(context.Context, func(kv.Record)) (time.Duration, error) { return time.Hour, nil }, func() {}, nil
	})
	require.Equal(t, time.Second, b.Backstop(time.Second, held))
	for i := range 200 {
		t.Cleanup(b.Follow(fmt.Sprint(i), func(kv.Record, error) {}))
	}
	require.Equal(t, 2*time.Second, b.Backstop(time.Second, held))
	require.Equal(t, 40*time.Second, b.Backstop(time.Second, kv.Record{}))
	require.Equal(t, time.Minute, b.Backstop(time.Minute, kv.Record{}))
}
