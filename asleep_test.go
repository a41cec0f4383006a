package election_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/observe/http"
)

// The monotonic clock stands still while a host is suspended, and so do all timers.
func TestTheFirstAnswerAfterASuspendIsRight(t *testing.T) {
	const ttl = 10 * time.Second
	synctest.Test(t, func(t *testing.T) {
		var asleep atomic.Int64
		store, epoch := memkv.New(), time.Now()
		c, err := election.New(store, "billing", &election.Options{ID: "a", TTL: ttl})
		require.NoError(t, err)
		c.SetClock(func() (mono, boot time.Duration) {
			return time.Since(epoch), time.Since(epoch) + time.Duration(asleep.Load())
		})
		h, err := electionhttp.New(c, store, nil)
		require.NoError(t, err)
		defer h.Close()
		get := func(path string) (int, string) {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
			return w.Code, w.Body.String()
		}

		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		defer running.Wait()
		defer cancel()
		running.Go(func() {
			_ = c.Run(ctx, func(ctx context.Context, _ *election.Term) error {
				<-ctx.Done()
				return nil
			})
		})
		synctest.Wait()
		code, _ := get("/leader")
		require.Equal(t, http.StatusOK, code)

		asleep.Add(int64(ttl * 9 / 10)) // and no goroutine has run since
		code, body := get("/leader")
		require.Equal(t, http.StatusServiceUnavailable, code, body)
		_, body = get("/")
		require.JSONEq(t, `{"name":""}`, body, "its record is still there, but it does not lead")
		code, _ = get("/livez")
		require.Equal(t, http.StatusOK, code, "its work may be about to stop")
		asleep.Add(int64(ttl))
		code, _ = get("/livez")
		require.Equal(t, http.StatusServiceUnavailable, code, "another may lead")
		time.Sleep(2 * ttl)
		code, _ = get("/livez")
		require.Equal(t, http.StatusOK, code, "the work was told to stop, and did")
	})
}
