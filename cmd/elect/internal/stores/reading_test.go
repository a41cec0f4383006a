package stores_test

import (
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/cmd/elect/internal/stores"
	"github.com/electkv/election/kv"
)

// Readers look at every moment of a database's coming into being.
func TestAReaderFindsADatabaseThatIsJustBeingMade(t *testing.T) {
	for range 5 {
		url := "sqlite://" + filepath.Join(t.TempDir(), "elect.db")
		var readers sync.WaitGroup
		for range 12 {
			a, err := stores.Parse(url, nothing)
			require.NoError(t, err)
			reader, err := a.Observe()
			require.NoError(t, err)
			defer reader.Close()
			readers.Go(func() {
				var err error
				for err = kv.ErrVacant; errors.Is(err, kv.ErrVacant); {
					_, err = reader.KV.Get(t.Context(), "name")
				}
				if err != nil {
					t.Errorf("a reader fails: %v", err)
				}
			})
			readers.Go(func() {
				for rec, err := range reader.KV.Watch(t.Context(), "name") {
					if err == nil && rec.Signature == "leader" {
						return
					}
					if err != nil && !errors.Is(err, kv.ErrVacant) {
						t.Errorf("a watch fails: %v", err)
						return
					}
				}
			})
		}
		time.Sleep(2 * time.Millisecond)
		_, err := open(t, url).KV.Create(t.Context(), "name", kv.Record{Signature: "leader", TTL: time.Minute})
		require.NoError(t, err)
		readers.Wait()
	}
}
