//go:build linux

package interop

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/internal/testenv/install"
)

// etcdSetup is a fleet in etcd.
func etcdSetup(t *testing.T, lock, layout string) setup {
	t.Helper()
	s := setup{
		lock: lock, store: inEtcd, key: "%s", ttl: 2 * time.Second, layout: layout,
		hold:   [2]time.Duration{200 * time.Millisecond, 900 * time.Millisecond},
		rest:   [2]time.Duration{100 * time.Millisecond, 500 * time.Millisecond},
		surely: 1500 * time.Millisecond,
		dead:   3 * time.Second, luck: 8, recovers: 2 * time.Second,
	}
	if strings.HasPrefix(lock, "etcdctl") {
		var err error
		s.command, err = install.Etcdctl.Path(t.Context(), os.Stderr)
		require.NoError(t, err)
	}
	s.operated = lock == "etcdctl elect"
	return s
}

func TestFleetsInEtcd(t *testing.T) {
	t.Parallel()
	for _, lock := range []string{"concurrency.Mutex", "concurrency.Election", "etcdctl lock", "etcdctl elect"} {
		t.Run(lock+"/queue", func(t *testing.T) {
			t.Parallel()
			playFleet(t, etcdSetup(t, lock, layoutQueue), testenv.Etcd(t))
		})
	}
	for _, lock := range []string{"concurrency.Mutex", "concurrency.Election"} {
		t.Run(lock+"/claim", func(t *testing.T) {
			t.Parallel()
			playFleet(t, etcdSetup(t, lock, layoutClaim), testenv.Etcd(t))
		})
	}
	t.Run("concurrency.Election/queue, plain", func(t *testing.T) {
		t.Parallel()
		s := etcdSetup(t, "concurrency.Election", layoutQueue)
		s.plain = true
		playFleet(t, s, testenv.Etcd(t))
	})
	// As etcd's own examples call theirs: the keys have two slashes.
	t.Run("concurrency.Election/queue, plain, with slashes", func(t *testing.T) {
		t.Parallel()
		s := etcdSetup(t, "concurrency.Election", layoutQueue)
		s.key, s.pref, s.suffix, s.plain = "/%s/", "/", "/", true
		playFleet(t, s, testenv.Etcd(t))
	})
}
