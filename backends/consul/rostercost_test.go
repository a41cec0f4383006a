//go:build unix

package consulkv_test

import (
	"testing"
	"time"

	"github.com/electkv/election/backends/consul"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/internal/toll"
	"github.com/electkv/election/kv"
)

func TestARosterCostsALeaderNoRequest(t *testing.T) {
	t.Parallel() // mostly it waits
	// With a server of its own, which no other test keeps busy.
	server := testenv.StartConsul(t)
	toll.Roster(t, func(t testing.TB) (kv.Store, func() int64) {
		open, count := dialEach([]string{server.Addr()})
		return consulkv.New(open(t), options), count
	}, 3*time.Second)
}
