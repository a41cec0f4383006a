package filekv

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

// An inotify instance is not always to be had: each user has few.
func TestAWatchWithoutFileEventsSeesEverything(t *testing.T) {
	s, other := pair(t)
	h := s.startHub()
	require.NotNil(t, h.events)
	require.NoError(t, h.events.Close())
	close(h.stop)
	<-h.done
	h.events, h.stop, h.done = nil, make(chan struct{}), make(chan struct{})
	go h.run()
	s.hub, s.watches = h, 1
	defer func() { close(h.stop); <-h.done }()

	began := time.Now()
	var rec kv.Record
	step := 0
	for got, err := range s.Watch(t.Context(), "n") {
		switch step++; step {
		case 1, 3:
			require.ErrorIs(t, err, kv.ErrVacant)
			if step == 1 {
				rec, err = other.Create(t.Context(), "n", kv.Record{Signature: "s", TTL: long})
				require.NoError(t, err)
			}
		case 2:
			require.NoError(t, err)
			require.Equal(t, rec, got)
			require.NoError(t, other.Delete(t.Context(), "n", rec))
		}
		if step == 3 {
			break
		}
	}
	require.Less(t, time.Since(began), backstop/2)
}
