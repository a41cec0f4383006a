package filekv_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	filekv "github.com/electkv/election/backends/file"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvtest"
)

func TestTheStoreKeepsTheContract(t *testing.T) {
	dir := t.TempDir()
	kvtest.Run(t, kvtest.Backend{
		Open:   func(t testing.TB) kv.Store { return open(t, dir) },
		TTL:    2 * time.Second,
		Put:    func(t testing.TB, name, value string) { put(t, dir, name, value) },
		Quit:   func(t testing.TB, s kv.Store) { s.(*filekv.Store).Quit(t) },
		Remove: func(t testing.TB, name string) { require.NoError(t, os.RemoveAll(folderOf(t, dir, name))) },
	})
}
