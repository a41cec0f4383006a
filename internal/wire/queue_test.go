package wire_test

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/wire"
)

func TestWhereThereIsNoRoomTheOldestGoes(t *testing.T) {
	q := wire.NewQueue(time.Hour)
	for i := range wire.MaxWaiting + 2 {
		dropped := q.Put([]byte{byte(i), byte(i >> 8)})
		require.Equal(t, i >= wire.MaxWaiting, dropped == 1)
	}
	k, body, err := wire.ReadFrame(bytes.NewReader(q.Take()), 64)
	require.NoError(t, err)
	require.Equal(t, wire.KindMessage, k)
	require.Equal(t, []byte{2, 0}, body)
	require.Empty(t, q.Take())

	large := make([]byte, wire.MaxMessage)
	require.Equal(t, []int{0, 0, 0, 0, 1}, []int{q.Put(large), q.Put(large), q.Put(large), q.Put(large), q.Put(large)})
	for range 4 {
		require.Len(t, q.Take(), 5+wire.MaxMessage)
	}
	require.Empty(t, q.Take())
}

func TestWhatIsTooOldIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := wire.NewQueue(time.Second)
		q.Put([]byte("a"))
		time.Sleep(600 * time.Millisecond)
		q.Put([]byte("b"))
		time.Sleep(600 * time.Millisecond)
		require.Equal(t, wire.Frame(wire.KindMessage, []byte("b")), q.Take())
		require.Empty(t, q.Take())
	})
}
