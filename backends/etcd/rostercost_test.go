package etcdkv_test

import (
	"testing"
	"time"

	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/internal/toll"
	"github.com/electkv/election/kv"
)

func TestARosterCostsALeaderNoRequest(t *testing.T) {
	t.Parallel() // mostly it waits
	toll.Roster(t, func(t testing.TB) (kv.Store, func() int64) {
		var sent count
		return openWith(t, &sent, layout{}, testenv.Etcd(t)), sent.Load
	}, 3*time.Second)
}
