package filekv

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/kv"
)

func benchmark(b *testing.B, op func(s *Store, rec kv.Record) error) {
	s, err := New(b.TempDir(), nil)
	require.NoError(b, err)
	rec, err := s.Create(b.Context(), "n", kv.Record{Signature: "s", TTL: long})
	require.NoError(b, err)
	for b.Loop() {
		require.NoError(b, op(s, rec))
	}
}

func BenchmarkGet(b *testing.B) {
	benchmark(b, func(s *Store, _ kv.Record) error {
		_, err := s.Get(b.Context(), "n")
		return err
	})
}

func BenchmarkRefresh(b *testing.B) {
	benchmark(b, func(s *Store, rec kv.Record) error {
		_, err := s.Refresh(b.Context(), "n", rec)
		return err
	})
}

func BenchmarkCreateAndDelete(b *testing.B) {
	benchmark(b, func(s *Store, _ kv.Record) error {
		rec, err := s.Create(b.Context(), "m", kv.Record{Signature: "s", TTL: long})
		if err != nil {
			return err
		}
		return s.Delete(b.Context(), "m", rec)
	})
}

// What a tick of the watches does for each holder.
func BenchmarkFeel(b *testing.B) {
	benchmark(b, func(s *Store, rec kv.Record) error {
		life, _, _ := parseLease(rec.Lease)
		_, err := s.feel(life)
		return err
	})
}
