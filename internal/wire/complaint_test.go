package wire_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/wire"
)

func TestComplaintsAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		complain := wire.Complaints(slog.New(slog.NewTextHandler(&log, nil)))
		lines := func() int { return strings.Count(log.String(), "\n") }
		for range 1000 {
			complain("a:1", "not connected", errors.New("refused"))
		}
		require.Equal(t, 1, lines())
		require.Contains(t, log.String(), "event=peer_not_connected")
		complain("b:1", "not connected", errors.New("refused"))
		require.Equal(t, 2, lines(), "each peer has its own")
		complain("a:1", "not connected", errors.New("another reason"))
		require.Equal(t, 2, lines())
		time.Sleep(time.Second)
		complain("a:1", "not connected", errors.New("refused"))
		require.Equal(t, 2, lines(), "it was said")
		complain("a:1", "not connected", errors.New("another reason"))
		require.Equal(t, 3, lines())
		require.Contains(t, log.String(), "unsaid=1001")
		for range 100 {
			time.Sleep(time.Minute)
			complain("a:1", "not connected", errors.New("another reason"))
		}
		require.Equal(t, 103, lines())
		for i := range 100 {
			complain(wire.ClientID(uint64(i)), "not connected", errors.New("refused"))
		}
		require.Equal(t, 104, lines(), "clients share one")
	})
}
