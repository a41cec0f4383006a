//go:build unix

package consulkv_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election/backends/consul"
	"github.com/electkv/election/internal/leak"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// fake returns a store on a server that answers as told.
func fake(t *testing.T, answer http.HandlerFunc) kv.Store {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return consulkv.New(dial(t, strings.TrimPrefix(server.URL, "http://")), options)
}

// holding writes the answer of a blocking query.
func holding(w http.ResponseWriter, index int, value string) {
	w.Header().Set("X-Consul-Index", fmt.Sprint(index))
	fmt.Fprintf(w, `[{"Key":"k","ModifyIndex":%d,"Flags":%d,"Session":"s","Value":%q}]`,
		index, uint64(api.LockFlagValue), value)
}

func TestAnIndexThatGoesBackIsStartedFromAgain(t *testing.T) {
	var (
		mu    sync.Mutex
		asked []string
	)
	s := fake(t, func(w http.ResponseWriter, req *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, req.URL.Query().Get("index"))
		indexes := []int{100, 40, 41, 0, 42}
		if n := len(asked); n <= len(indexes) {
			holding(w, indexes[n-1], "dmFsdWU=")
			return
		}
		w.WriteHeader(http.StatusInternalServerError)
	})
	for _, err := range s.Watch(within(t, time.Minute), "k") {
		if err != nil {
			require.ErrorContains(t, err, "500")
		}
	}
	require.Equal(t, []string{"", "100", "", "41", "", "42"}, asked)
}

// A restored snapshot ends the queries that wait, and the next one starts from
// an index that is no more. Where none waits, the backstop finds out.
func TestAWatchSurvivesARestoredSnapshot(t *testing.T) {
	t.Parallel() // it mostly waits
	server := testenv.StartConsul(t)
	client := dial(t, server.Addr())
	for _, waiting := range []bool{true, false} {
		s := consulkv.New(client, &consulkv.Options{MinTTL: ttl, Backstop: 3 * time.Second})
		if waiting {
			s = consulkv.New(client, &consulkv.Options{MinTTL: ttl, Backstop: 10 * time.Minute})
		}
		name := newName()
		rec := create(t, s, name, signed("v", time.Hour))
		saved := snapshot(t, client)
		next := rec
		next.Value = "changed"
		changed, err := s.Swap(t.Context(), name, rec, next)
		require.NoError(t, err)

		restore := func() { require.NoError(t, client.Snapshot().Restore(nil, bytes.NewReader(saved))) }
		var crowd sync.WaitGroup
		watched := []kv.Record{}
		for got, err := range s.Watch(within(t, time.Minute), name) {
			require.NoError(t, err)
			watched = append(watched, got)
			switch {
			case len(watched) > 1:
			case waiting:
				crowd.Go(func() {
					time.Sleep(time.Second)
					restore()
				})
			default:
				restore()
			}
			if got == rec {
				break
			}
		}
		crowd.Wait()
		require.Equal(t, []kv.Record{changed, rec}, watched)
		require.Less(t, rec.Revision, changed.Revision, "the index went back")
	}
}

// whileAsked returns a context that ends after two seconds, or once a server was asked a few times if
// that takes a busy machine longer.
func whileAsked(t *testing.T, asked *atomic.Int64) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(within(t, time.Minute))
	go func() {
		defer cancel()
		for start := time.Now(); ctx.Err() == nil && (time.Since(start) < 2*time.Second || asked.Load() <= 5); {
			time.Sleep(10 * time.Millisecond)
		}
	}()
	return ctx
}

// Each answer comes at once: without a change, and with one each time.
func TestAWatchDoesNotSpinOnAnswersThatComeAtOnce(t *testing.T) {
	t.Parallel() // it mostly waits
	for what, answer := range map[string]func(w http.ResponseWriter, n int){
		"nothing new":        func(w http.ResponseWriter, _ int) { holding(w, 7, "dmFsdWU=") },
		"a busy key":         func(w http.ResponseWriter, n int) { holding(w, n, "dmFsdWU=") },
		"no index":           func(w http.ResponseWriter, _ int) { fmt.Fprint(w, "[]") },
		"no key and no news": func(w http.ResponseWriter, _ int) { w.WriteHeader(http.StatusNotFound) },
	} {
		t.Run(what, func(t *testing.T) {
			var asked atomic.Int64
			s := fake(t, func(w http.ResponseWriter, _ *http.Request) { answer(w, int(asked.Add(1))) })
			ctx := whileAsked(t, &asked)
			yields := 0
			for _, err := range s.Watch(ctx, "k") {
				if ctx.Err() == nil && !errors.Is(err, kv.ErrVacant) {
					require.NoError(t, err)
				}
				yields++
			}
			require.LessOrEqual(t, asked.Load(), int64(25), "requests in two seconds")
			require.Greater(t, asked.Load(), int64(5), "it goes on asking")
			if what != "a busy key" {
				require.Equal(t, 2, yields, "the state, and the end")
			}
		})
	}
}

func TestAWatchOfAnUnchangedSafeWaitsInOneRequest(t *testing.T) {
	client, requests := dialCounted(t, testenv.Consul(t), nil)
	s := consulkv.New(client, options)
	held, vacant, foreign := newName(), newName(), newName()
	rec := create(t, s, held, signed("v", time.Minute))
	_, err := client.KV().Put(&api.KVPair{Key: foreign, Value: []byte("a setting")}, nil)
	require.NoError(t, err)

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var crowd sync.WaitGroup
	defer crowd.Wait()
	defer cancel()
	var seen atomic.Int64
	for _, name := range []string{held, vacant, foreign} {
		crowd.Go(func() {
			for range s.Watch(ctx, name) {
				seen.Add(1)
			}
		})
	}
	require.Eventually(t, func() bool { return seen.Load() == 3 }, 30*time.Second, 10*time.Millisecond)
	time.Sleep(500 * time.Millisecond)
	before := requests.count.Load()
	for range 5 {
		time.Sleep(500 * time.Millisecond)
		_, err := s.Refresh(t.Context(), held, rec)
		require.NoError(t, err)
	}
	require.Equal(t, before+10, requests.count.Load(), "a refresh sends two requests, a watch none")
	require.Equal(t, int64(3), seen.Load())
}

func TestAWatchAsksAgainAtItsBackstop(t *testing.T) {
	client, requests := dialCounted(t, testenv.Consul(t), nil)
	s := consulkv.New(client, &consulkv.Options{MinTTL: ttl, Backstop: 500 * time.Millisecond})
	for range s.Watch(whileAsked(t, &requests.count), newName()) {
	}
	require.GreaterOrEqual(t, requests.count.Load(), int64(4))
	require.LessOrEqual(t, requests.count.Load(), int64(16), "the key is absent, so what fades of other tests may wake the watch, too")
}

func TestAWatchOfASilentServerEndsByItself(t *testing.T) {
	t.Parallel()
	proxy := testenv.NewProxy(t, testenv.Consul(t))
	s := consulkv.New(dial(t, proxy.Addr()), &consulkv.Options{MinTTL: ttl, Backstop: time.Second})
	ctx := within(t, time.Minute)
	var last error
	for _, err := range s.Watch(ctx, newName()) {
		last = err
		proxy.BlackHole()
	}
	require.ErrorContains(t, last, "no answer within")
	require.NotErrorIs(t, last, context.DeadlineExceeded, "the reader's context has not ended")
	require.NoError(t, ctx.Err())
}

// The connection of its first look may be one from the client's pool that has
// died meanwhile.
func TestAWatchWhoseFirstLookIsNotAnsweredEndsLongBeforeItsBackstop(t *testing.T) {
	t.Parallel()
	proxy := testenv.NewProxy(t, testenv.Consul(t))
	proxy.BlackHole()
	s := consulkv.New(dial(t, proxy.Addr()), options)
	begin := time.Now()
	for _, err := range s.Watch(within(t, time.Minute), newName()) {
		require.ErrorContains(t, err, "no answer within")
	}
	require.Less(t, time.Since(begin), 30*time.Second)
}

func TestAWatchEndsWithTheServersError(t *testing.T) {
	s := fake(t, func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "No cluster leader", http.StatusInternalServerError)
	})
	yields := 0
	for rec, err := range s.Watch(within(t, time.Minute), "k") {
		yields++
		require.Zero(t, rec)
		require.ErrorContains(t, err, "No cluster leader")
		require.NotErrorIs(t, err, kv.ErrVacant)
	}
	require.Equal(t, 1, yields)
}

func TestWatchesLeaveNothingBehind(t *testing.T) {
	client, requests := dialCounted(t, testenv.Consul(t), nil)
	s := consulkv.New(client, options)
	name := newName()
	before := leak.Before()
	for i := range 20 {
		for range s.Watch(t.Context(), name) {
			break
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*5*time.Millisecond)
		var last error
		for _, last = range s.Watch(ctx, name) {
		}
		cancel()
		require.ErrorIs(t, last, context.DeadlineExceeded)
	}
	requests.next.(*http.Transport).CloseIdleConnections()
	before.Check(t)
}
