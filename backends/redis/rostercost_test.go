package rediskv_test

import (
	"testing"
	"time"

	rediskv "github.com/electkv/election/backends/redis"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/internal/toll"
	"github.com/electkv/election/kv"
)

func TestARosterCostsALeaderNoRequest(t *testing.T) {
	t.Parallel() // mostly it waits
	toll.Roster(t, func(t testing.TB) (kv.Store, func() int64) {
		var sent requests
		return rediskv.New(sent.count(dial(t, testenv.Redis(t))), &rediskv.Options{Prefix: prefix}), sent.Load
	}, 3*time.Second)
}
