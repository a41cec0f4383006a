//go:build unix

package consulkv_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/backends/consul"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// A sighting is what a watch yielded once.
type sighting struct {
	rec kv.Record
	err error
}

// watching reads a watch in a goroutine of its own, until the test ends, and returns
// what yields its next sighting.
func watching(t testing.TB, s kv.Store, name string) (next func() sighting) {
	ctx, cancel := context.WithCancel(context.Background())
	seen, done := make(chan sighting, 1024), make(chan struct{})
	go func() {
		defer close(done)
		for rec, err := range s.Watch(ctx, name) {
			seen <- sighting{rec, err}
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	return func() sighting {
		t.Helper()
		select {
		case o := <-seen:
			return o
		case <-within(t, time.Minute).Done():
			require.FailNow(t, "the watch yields nothing")
			panic("unreachable")
		}
	}
}

func TestAnObservedWatchSurvivesARestoredSnapshot(t *testing.T) {
	server := testenv.StartConsul(t)
	client := dial(t, server.Addr())
	s := consulkv.NewObserved(client, &consulkv.ObservedOptions{Backstop: 3 * time.Second})
	name := newName()
	rec := create(t, s, name, signed("v", time.Hour))
	saved := snapshot(t, client)
	changed := publish(t, s, name, rec, "changed")
	next := watching(t, s, name)
	require.Equal(t, changed, next().rec)
	require.NoError(t, client.Snapshot().Restore(nil, bytes.NewReader(saved)))
	require.Equal(t, rec, next().rec)
}

// Nothing tells it of the record's end. Before it says so it looks once more.
func TestAnObservedWatchTellsOfADeadRecordByItself(t *testing.T) {
	t.Parallel() // it mostly waits
	s, _, _ := observed(t)
	owner, _, _ := observed(t)
	name := newName()
	rec := create(t, owner, name, signed("abandoned", 8*time.Second)) // a look may take as long
	next := watching(t, s, name)
	require.Equal(t, rec, next().rec)
	require.ErrorIs(t, next().err, kv.ErrVacant)
	rec = create(t, s, name, signed("next", time.Minute))
	require.Equal(t, rec, next().rec)
	require.NoError(t, s.Delete(t.Context(), name, rec))
	require.ErrorIs(t, next().err, kv.ErrVacant)
}

// A server that answers at once, with another revision each time.
func TestAnObservedWatchOfABusyKeyDoesNotSpin(t *testing.T) {
	text := base64.StdEncoding.EncodeToString([]byte(kv.EncodeObserved(kv.Record{Signature: "s", TTL: time.Minute, Token: 1})))
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := asked.Add(1)
		w.Header().Set("X-Consul-Index", fmt.Sprint(n))
		fmt.Fprintf(w, `[{"Key":"k","ModifyIndex":%d,"Flags":%d,"Value":%q}]`, n, uint64(observedFlags), text)
	}))
	defer server.Close()
	s := consulkv.NewObserved(dial(t, strings.TrimPrefix(server.URL, "http://")), nil)
	ctx := whileAsked(t, &asked)
	for rec, err := range s.Watch(ctx, "k") {
		if ctx.Err() == nil {
			require.NoError(t, err)
			require.EqualValues(t, 1, rec.Token)
		}
	}
	require.LessOrEqual(t, asked.Load(), int64(25), "requests in two seconds")
	require.Greater(t, asked.Load(), int64(5), "it goes on asking")
}
