package filekv_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

func TestANoteCountsIntoTheSizeOfARecord(t *testing.T) {
	s := open(t, t.TempDir())
	half := strings.Repeat("x", 600<<10)
	large := kv.Record{Signature: "s", Value: half, Note: half, TTL: time.Minute}
	_, err := s.Create(t.Context(), "n", large)
	require.ErrorIs(t, err, kv.ErrInvalid)
	require.ErrorContains(t, err, "signature, value and note have 1228801 bytes; at most 1048576 fit")
	large.Note = ""
	rec, err := s.Create(t.Context(), "n", large)
	require.NoError(t, err)
	for _, next := range []kv.Record{rec, {Signature: "t", Value: half, TTL: time.Minute}} {
		next.Note = half
		_, err = s.Swap(t.Context(), "n", rec, next)
		require.ErrorIs(t, err, kv.ErrInvalid)
		require.ErrorContains(t, err, "at most 1048576 fit")
	}
}
