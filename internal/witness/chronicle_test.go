package witness_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/witness"
)

func TestAnEventIsAwaitedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c witness.Chronicle
		c.Note(history.Event{At: 3, Kind: history.Ready})
		c.Note(history.Event{At: 2, Kind: history.Extended})
		go func() {
			time.Sleep(time.Second)
			c.Note(history.Event{At: 1, Kind: history.Elected})
			c.Note(history.Event{At: 4, Kind: history.Extended})
		}()
		extended := func(e history.Event) bool { return e.Kind == history.Extended }
		e, seen, ok := c.Await(0, time.Minute, extended)
		require.True(t, ok)
		require.EqualValues(t, 2, e.At)
		e, seen, ok = c.Await(seen, time.Minute, extended)
		require.True(t, ok)
		require.EqualValues(t, 4, e.At)
		_, _, ok = c.Await(seen, time.Minute, extended)
		require.False(t, ok, "no more have come")
	})
}

func TestAHistoryIsSortedAndItsOwn(t *testing.T) {
	var c witness.Chronicle
	c.Note(history.Event{At: 2, Kind: history.Elected})
	c.Note(history.Event{At: 1, Kind: history.Ready})
	h := c.History(history.About{Title: "two events"})
	require.Equal(t, "two events", h.Title)
	h.Events[1].Who = "somebody"
	require.Equal(t, []history.Event{{At: 1, Kind: history.Ready}, {At: 2, Kind: history.Elected}}, c.History(history.About{}).Events)
}
