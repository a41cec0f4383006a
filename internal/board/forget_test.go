package board_test

import (
	"context"
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/board"
	"github.com/electkv/election/kv"
)

// A timer that was left running would keep a topic in memory.
func TestATopicThatHasEndedIsForgotten(t *testing.T) {
	var topic weak.Pointer[board.Topic]
	look := func(_ context.Context, show func(kv.Record)) (time.Duration, error) {
		show(kv.Record{})
		return time.Hour, nil
	}
	b := board.New(0, func(_ string, t *board.Topic) (board.Look, func(), error) {
		topic = weak.Make(t)
		return look, nil, nil
	})
	shown := make(chan struct{})
	stop := b.Follow("at rest", func(kv.Record, error) { close(shown) })
	<-shown
	forgotten(t, stop, &topic)

	begun := make(chan struct{})
	look = func(ctx context.Context, show func(kv.Record)) (time.Duration, error) {
		close(begun)
		<-ctx.Done()
		show(kv.Record{})
		return time.Hour, nil
	}
	stop = b.Follow("looked at", func(kv.Record, error) {})
	<-begun
	forgotten(t, stop, &topic)
}

// forgotten stops, and requires that the topic's memory is free then.
func forgotten(t *testing.T, stop func(), topic *weak.Pointer[board.Topic]) {
	t.Helper()
	stop()
	require.Eventually(t, func() bool {
		runtime.GC()
		return topic.Value() == nil
	}, 30*time.Second, 10*time.Millisecond)
}
