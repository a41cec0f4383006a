package etcdkv_test

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	etcdkv "github.com/electkv/election/backends/etcd"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// metric returns a number that the server publishes about itself.
func metric(t testing.TB, addr, name string) int {
	t.Helper()
	resp, err := http.Get("http://" + addr + "/metrics")
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if number, ok := strings.CutPrefix(line, name+" "); ok {
			value, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
			require.NoError(t, err)
			return int(value)
		}
	}
	require.FailNow(t, "no such metric", name)
	return 0
}

// One client, one connection, one stream of watches: 500 elections in a process.
func TestFiveHundredSafesShareAConnectionAndAStream(t *testing.T) {
	const safes = 500
	server := testenv.StartEtcd(t)
	var sent count
	client := dial(t, &sent, server.Addr())
	store := etcdkv.New(client, &etcdkv.Options{Prefix: prefix})
	recs, watches := make([]kv.Record, safes), make([]*watcher, safes)
	each := func(f func(i int, name string)) {
		var crowd sync.WaitGroup
		for i := range safes {
			crowd.Go(func() { f(i, fmt.Sprintf("safe %d", i)) })
		}
		crowd.Wait()
	}
	each(func(i int, name string) {
		var err error
		recs[i], err = store.Create(within(t, patience), name, signed(name))
		if err != nil {
			t.Error(err)
		}
		watches[i] = watching(t, store, name)
	})
	for i, w := range watches {
		w.sees(recs[i])
	}
	require.Eventually(t, func() bool {
		return metric(t, server.Addr(), "etcd_debugging_mvcc_watcher_total") == safes
	}, patience, 100*time.Millisecond, "a watch of each")
	require.Equal(t, 1, metric(t, server.Addr(), "etcd_debugging_mvcc_watch_stream_total"))

	before := sent.Load()
	each(func(i int, name string) {
		if _, err := store.Refresh(within(t, patience), name, recs[i]); err != nil {
			t.Error(err)
		}
	})
	require.EqualValues(t, 2*safes, sent.Load()-before, "requests for a refresh of each")

	each(func(i int, name string) {
		if err := store.Delete(within(t, patience), name, recs[i]); err != nil {
			t.Error(err)
		}
	})
	for _, w := range watches {
		require.True(t, w.next().vacant())
	}
}

// A crowd of candidates that come too late costs the cluster no writes.
func TestToBeRefusedCostsARead(t *testing.T) {
	var sent count
	store := open(t, &sent, testenv.Etcd(t))
	name, _ := held(t, store)
	before := sent.Load()
	_, err := store.Create(within(t, patience), name, signed("late"))
	require.ErrorIs(t, err, kv.ErrHeld)
	require.EqualValues(t, 1, sent.Load()-before)
}
