//go:build !race

// The race detector makes SQLite, which is C turned into Go, an order of magnitude
// slower: too slow for cases that weigh what a watch costs, and crowds of writers that
// wait for one file. "make test" and "make test/all" run these without it; all other tests of this package
// run with it.

package sqlkv_test

import (
	"testing"

	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv/kvtest"
)

func TestSQLiteKeepsTheContract(t *testing.T) {
	kvtest.Run(t, inSQLite(t).backend())
}

func TestWithObserversSQLiteKeepsTheContract(t *testing.T) {
	testenv.Long(t)
	kvtest.Run(t, inSQLite(t).observedBackend())
}
