//go:build unix

package consulkv_test

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election/backends/consul"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
)

// unknown requires that the error claims no outcome.
func unknown(t *testing.T, err error) {
	t.Helper()
	require.Error(t, err)
	for _, definite := range []error{kv.ErrVacant, kv.ErrHeld, kv.ErrStale, kv.ErrInvalid} {
		require.NotErrorIs(t, err, definite)
	}
}

func TestEveryOperationOnAPausedServerReturnsWithItsContext(t *testing.T) {
	t.Parallel() // it mostly waits
	server := testenv.StartConsul(t)
	s := consulkv.New(dial(t, server.Addr()), options)
	name := newName()
	rec := create(t, s, name, signed("v", time.Minute))
	next := rec
	next.Value = "changed"
	server.Pause()
	for what, call := range map[string]func(ctx context.Context) error{
		"create": func(ctx context.Context) error {
			_, err := s.Create(ctx, newName(), signed("v", time.Minute))
			return err
		},
		"publish": func(ctx context.Context) error { _, err := s.Swap(ctx, name, rec, next); return err },
		"take over": func(ctx context.Context) error {
			_, err := s.Swap(ctx, name, rec, signed("v", time.Minute))
			return err
		},
		"refresh": func(ctx context.Context) error { _, err := s.Refresh(ctx, name, rec); return err },
		"delete":  func(ctx context.Context) error { return s.Delete(ctx, name, rec) },
		"get":     func(ctx context.Context) error { _, err := s.Get(ctx, name); return err },
		"watch": func(ctx context.Context) (last error) {
			for _, last = range s.Watch(ctx, name) {
			}
			return last
		},
	} {
		start := time.Now()
		why := errors.New("the caller thought better of it")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 300*time.Millisecond, why)
		err := call(ctx)
		cancel()
		require.ErrorIs(t, err, why, what)
		unknown(t, err)
		require.Less(t, time.Since(start), 30*time.Second, what)
	}
	server.Continue()
	eventually(t, func() error { _, err := s.Get(within(t, 5*time.Second), name); return err })
}

// losesReply calls write until its transaction was carried out, and not for so long that it has the reply.
func losesReply(t *testing.T, proxy *testenv.Proxy, requests *wire, write func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(within(t, time.Minute))
	defer cancel()
	requests.beforeTxn(func(*http.Request) {
		proxy.HoldReplies()
		go func() {
			_ = proxy.AwaitHeld(ctx)
			cancel()
		}()
	})
	err := write(ctx)
	require.ErrorIs(t, err, context.Canceled)
	unknown(t, err)
	proxy.Heal()
}

// The reply to the transaction is lost, and with it who holds the safe.
func TestACreateWhoseReplyIsLostIsUnknownAndItsRecordIsThere(t *testing.T) {
	proxy := testenv.NewProxy(t, testenv.Consul(t))
	client, requests := dialCounted(t, proxy.Addr(), nil)
	s := consulkv.New(client, options)
	name, rec := newName(), signed("v", time.Minute)
	losesReply(t, proxy, requests, func(ctx context.Context) error { _, err := s.Create(ctx, name, rec); return err })
	got, err := s.Get(within(t, time.Minute), name)
	require.NoError(t, err)
	require.Equal(t, rec.Signature, got.Signature)
	_, err = s.Refresh(within(t, time.Minute), name, got)
	require.NoError(t, err, "whoever finds its signature can go on with the record")
}

// twice sends the next transaction two times, as a proxy may.
func twice(t *testing.T, w *wire) {
	w.beforeTxn(func(req *http.Request) { ahead(t, w, req) })
}

// ahead carries a request out, besides the one that is going to be sent.
func ahead(t *testing.T, w *wire, req *http.Request) {
	again := req.Clone(req.Context())
	var err error
	again.Body, err = req.GetBody()
	require.NoError(t, err)
	answer, err := w.next.RoundTrip(again)
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusOK, answer.StatusCode)
}

func TestARecordThatWasCreatedTwiceIsCreated(t *testing.T) {
	inEachForm(t, aRecordThatWasCreatedTwiceIsCreated)
}

func aRecordThatWasCreatedTwiceIsCreated(t *testing.T, opts *consulkv.Options) {
	s, _, requests := openAs(t, opts)
	name := newName()
	twice(t, requests)
	rec := create(t, s, name, signed("v", time.Minute))
	got, err := s.Refresh(t.Context(), name, rec)
	require.NoError(t, err)
	require.Equal(t, rec, got)

	twice(t, requests)
	rec, err = s.Swap(t.Context(), name, rec, signed("taken over", time.Minute))
	require.NoError(t, err)
	got, err = s.Refresh(t.Context(), name, rec)
	require.NoError(t, err)
	require.Equal(t, rec, got)
	require.NoError(t, s.Delete(t.Context(), name, rec))
}

// A session that expired before its first use, say on a slow network.
func TestACreateWhoseSessionEndedBeforeUseIsNotHeld(t *testing.T) {
	s, client, requests := open(t)
	name := newName()
	requests.beforeTxn(func(*http.Request) {
		list, _, err := client.Session().List(nil)
		require.NoError(t, err)
		for _, session := range list {
			if session.Name == "election: "+name {
				_, err := client.Session().Destroy(session.ID, nil)
				require.NoError(t, err)
			}
		}
	})
	_, err := s.Create(t.Context(), name, signed("v", time.Minute))
	unknown(t, err)
	require.ErrorContains(t, err, "invalid session")
	_, err = s.Get(t.Context(), name)
	require.ErrorIs(t, err, kv.ErrVacant)
}

// The same in a takeover: the record is as its owner saw it.
func TestATakeoverWhoseSessionEndedBeforeUseIsNotStale(t *testing.T) {
	s, client, requests := open(t)
	name := newName()
	rec := create(t, s, name, signed("v", time.Minute))
	requests.beforeTxn(func(*http.Request) {
		list, _, err := client.Session().List(nil)
		require.NoError(t, err)
		for _, session := range list {
			if session.Name == "election: "+name && session.ID != rec.Lease {
				_, err := client.Session().Destroy(session.ID, nil)
				require.NoError(t, err)
			}
		}
	})
	_, err := s.Swap(t.Context(), name, rec, signed("v", time.Minute))
	unknown(t, err)
	got, err := s.Refresh(t.Context(), name, rec)
	require.NoError(t, err)
	require.Equal(t, rec, got)
}

// The client reports the end of a body that breaks off as text alone.
func TestAnAnswerThatBreaksOffReportsTheContext(t *testing.T) {
	held := signed("v", time.Minute)
	text := base64.StdEncoding.EncodeToString([]byte(kv.Encode(held)))
	s := fake(t, func(w http.ResponseWriter, req *http.Request) {
		if req.Method == http.MethodGet {
			holding(w, 5, text)
			return
		}
		w.WriteHeader(http.StatusOK)
		assert.NoError(t, http.NewResponseController(w).Flush())
		<-req.Context().Done()
	})
	held.Token = 5
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := s.Refresh(ctx, "k", held)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	unknown(t, err)
}
