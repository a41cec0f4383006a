package wire_test

import (
	"bytes"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/wire"
)

func FuzzReadFrame(f *testing.F) {
	f.Add(wire.Frame(wire.KindMessage, []byte("body")))
	f.Add(wire.Frame(wire.KindAlive, nil))
	f.Add([]byte{0, 0, 0, 0})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 1})
	f.Add([]byte{0, 0, 1, 0, 1, 2, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		k, body, err := wire.ReadFrame(bytes.NewReader(b), 64)
		if err == nil && !bytes.HasPrefix(b, wire.Frame(k, body)) {
			t.Fatalf("%x is read as kind %d and %x", b, k, body)
		}
		if len(body) > 64 {
			t.Fatalf("%d bytes are read", len(body))
		}
	})
}

func TestAFrameThatIsAnnouncedAndDoesNotComeTakesNoMemory(t *testing.T) {
	head := []byte{0, 0x10, 0, 0}
	const times = 100
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range times {
		_, _, err := wire.ReadFrame(bytes.NewReader(head), wire.MaxMessage)
		require.Error(t, err)
	}
	runtime.ReadMemStats(&after)
	require.Less(t, (after.TotalAlloc-before.TotalAlloc)/times, uint64(64<<10))
}
