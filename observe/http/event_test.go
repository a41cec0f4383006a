package electionhttp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/internal/leak"
	"github.com/electkv/election/kv/kvfault"
	"github.com/electkv/election/observe/http"
)

// A wire is a network without time of its own: a server listens on it, and clients dial it. Nothing
// is buffered on it.
type wire struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

// Accept implements [net.Listener].
func (w *wire) Accept() (net.Conn, error) {
	select {
	case c := <-w.conns:
		return c, nil
	case <-w.done:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener].
func (w *wire) Close() error { w.once.Do(func() { close(w.done) }); return nil }

// Addr implements [net.Listener].
func (w *wire) Addr() net.Addr { return &net.UnixAddr{Name: "wire"} }

func (w *wire) dial(context.Context, string, string) (net.Conn, error) {
	here, there := net.Pipe()
	w.conns <- there
	return here, nil
}

// serve has a handler answer on a wire, and returns what makes requests there.
func serve(t *testing.T, h *host) (*http.Server, *http.Client) {
	w := &wire{conns: make(chan net.Conn), done: make(chan struct{})}
	transport := &http.Transport{DialContext: w.dial}
	server := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(w)
	}()
	t.Cleanup(func() {
		h.Close()
		require.NoError(t, server.Close())
		<-served
		transport.CloseIdleConnections()
	})
	return server, &http.Client{Transport: transport}
}

// An ear is a client that follows the events.
type ear struct {
	t     *testing.T
	body  io.ReadCloser
	lines chan string // closed at the end of the stream
}

// listen follows the events. The stream has a second to answer.
func listen(t *testing.T, client *http.Client) *ear {
	t.Helper()
	resp := get(t, client) //nolint:bodyclose // it is closed when the test ends
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.Equal(t, "text/event-stream", resp.Header.Get("Content-Type"))
	require.Equal(t, "no-store", resp.Header.Get("Cache-Control"))
	e := &ear{t, resp.Body, make(chan string, 1000)}
	go func() {
		defer close(e.lines)
		for scanner := bufio.NewScanner(resp.Body); scanner.Scan(); {
			e.lines <- scanner.Text()
		}
	}()
	t.Cleanup(func() { _ = resp.Body.Close() })
	return e
}

func get(t *testing.T, client *http.Client) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://wire/events", nil)
	require.NoError(t, err)
	resp, err := client.Do(r)
	require.NoError(t, err)
	return resp
}

// heard is one event, or a comment.
type heard struct {
	kind, id string
	data     map[string]any
}

// next returns the next event. It waits for at most so long.
func (e *ear) next(within time.Duration) (h heard, ok bool) {
	e.t.Helper()
	timer := time.NewTimer(within)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
			return h, false
		case line, open := <-e.lines:
			field, value, _ := strings.Cut(line, ": ")
			switch {
			case !open:
				return h, false
			case line == "" && h.kind != "":
				return h, true
			case line == ":":
				h.kind = "comment"
			case field == "event":
				h.kind = value
			case field == "id":
				h.id = value
			case field == "data":
				require.NoError(e.t, json.Unmarshal([]byte(value), &h.data))
			}
		}
	}
}

// want waits for the next event, but for comments.
func (e *ear) want(kind string) heard {
	e.t.Helper()
	for {
		h, ok := e.next(ttl)
		require.True(e.t, ok, "no more events, but %s was expected", kind)
		if h.kind != "comment" {
			require.Equal(e.t, kind, h.kind, h.data)
			return h
		}
	}
}

// present waits for the events of the present state, in any order.
func (e *ear) present() map[string]heard {
	e.t.Helper()
	seen := map[string]heard{}
	for range 3 {
		h, ok := e.next(time.Second)
		require.True(e.t, ok)
		seen[h.kind] = h
	}
	require.Len(e.t, seen, 3)
	return seen
}

// ended reports whether the stream has ended.
func (e *ear) ended() bool {
	for {
		select {
		case _, open := <-e.lines:
			if !open {
				return true
			}
		default:
			return false
		}
	}
}

func TestEventsAreThePresentStateAndThenWhatChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memkv.New()
		a, b := newHost(t, store, "a", nil), newHost(t, store, "b", nil)
		stop := a.run(0)
		_, client := serve(t, b)
		time.Sleep(time.Second)
		e := listen(t, client)
		seen := e.present()
		require.Equal(t, "a", seen["leader"].data["id"])
		require.Equal(t, "leader", seen["leader"].data["state"])
		require.Equal(t, fmt.Sprint(a.candidate.Status().Token), seen["leader"].id)
		require.Equal(t, "idle", seen["role"].data["role"])
		require.Empty(t, seen["role"].id, "of no term")

		b.run(0)
		for last := ""; last != "heir"; {
			h, ok := e.next(time.Second)
			require.True(t, ok)
			switch h.kind {
			case "role": // that of a candidate may be over before it is seen
				last = h.data["role"].(string)
			case "heir":
				require.Equal(t, "b", h.data["id"])
			}
		}
		stop()
		time.Sleep(time.Second)
		seen = map[string]heard{}
		for h, ok := e.next(time.Second); ok; h, ok = e.next(time.Second) {
			seen[h.kind] = h
		}
		token := fmt.Sprint(b.candidate.Status().Token)
		require.Equal(t, "b", seen["leader"].data["id"])
		require.Equal(t, token, seen["leader"].id)
		require.Empty(t, seen["heir"].data["id"])
		require.Equal(t, "leader", seen["role"].data["role"])
		require.Equal(t, token, seen["role"].id)
		require.Positive(t, seen["role"].data["remaining"])

		late := listen(t, client)
		seen = late.present()
		require.Equal(t, "b", seen["leader"].data["id"], "the present state")
		require.Equal(t, "leader", seen["role"].data["role"])
		require.Equal(t, 2, b.read.Calls(kvfault.Watch), "all clients share them")
	})
}

func TestTheEndOfTrustIsAnEventOfThatMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newHost(t, memkv.New(), "a", nil)
		a.run(ttl)
		began := time.Now()
		_, client := serve(t, a)
		a.own.On(kvfault.Refresh).DropRequests()
		time.Sleep(33 * time.Millisecond)
		e := listen(t, client)
		e.present()
		require.Equal(t, "idle", e.want("role").data["role"])
		require.Equal(t, trust, time.Since(began).Truncate(time.Millisecond))
		a.own.Heal()
	})
}

func TestTroubleWithTheStoreIsAnEventAndItsEndIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newHost(t, memkv.New(), "a", nil)
		a.read.On(kvfault.Watch).Fail(errors.New("cut off"))
		_, client := serve(t, a)
		e := listen(t, client)
		seen := map[string]heard{}
		for len(seen) < 2 {
			h, ok := e.next(time.Second)
			require.True(t, ok)
			seen[h.kind] = h
		}
		require.Contains(t, seen["role"].data, "role")
		require.Contains(t, seen["trouble"].data["error"], "cut off")
		a.read.Heal()
		for {
			h, ok := e.next(ttl)
			require.True(t, ok)
			if h.kind == "leader" {
				require.Equal(t, "vacant", h.data["state"])
				break
			}
		}
		time.Sleep(3 * time.Second) // the heir is watched again
		late := listen(t, client)
		late.present()
		_, more := late.next(time.Second)
		require.False(t, more, "the trouble is over")
	})
}

func TestAStreamWithoutEventsShowsThatItIsAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newHost(t, memkv.New(), "a", nil)
		_, client := serve(t, a)
		e := listen(t, client)
		time.Sleep(time.Second)
		comments := 0
		for began := time.Now(); time.Since(began) < time.Minute; {
			if h, ok := e.next(11 * time.Second); ok && h.kind == "comment" {
				comments++
			}
		}
		require.InDelta(t, 6, comments, 2)
	})
}

func TestTheWatchEndsWithTheLastClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memkv.New()
		a := newHost(t, store, "a", nil)
		_, client := serve(t, a)
		before := leak.Before()
		first, second := listen(t, client), listen(t, client)
		time.Sleep(time.Second)
		require.NoError(t, first.body.Close())
		time.Sleep(time.Second)
		b := newHost(t, store, "b", nil)
		stop := b.run(0)
		time.Sleep(time.Second)
		require.False(t, second.ended())
		require.NoError(t, second.body.Close())
		stop()
		before.Check(t)
		watches := a.read.Calls(kvfault.Watch)
		third := listen(t, client)
		require.Equal(t, "vacant", third.present()["leader"].data["state"], "nothing of an earlier watch")
		require.Equal(t, watches+2, a.read.Calls(kvfault.Watch), "new ones")
	})
}

func TestOnlySoManyClientsMayFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newHost(t, memkv.New(), "a", &electionhttp.Options{Streams: 2})
		_, client := serve(t, a)
		first, second := listen(t, client), listen(t, client)
		third := get(t, client)
		require.Equal(t, http.StatusServiceUnavailable, third.StatusCode)
		require.NotEmpty(t, third.Header.Get("Retry-After"))
		require.NoError(t, third.Body.Close())
		require.NoError(t, first.body.Close())
		time.Sleep(time.Second)
		listen(t, client)
		require.False(t, second.ended())
	})
}

// The wire has no buffer: a client that does not read holds up what writes to it at once.
func TestAClientThatTakesNothingIsDroppedAndHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memkv.New()
		a := newHost(t, store, "a", &electionhttp.Options{Streams: 2})
		_, client := serve(t, a)
		slow := get(t, client)
		t.Cleanup(func() { _ = slow.Body.Close() })
		e := listen(t, client)
		e.present()
		for i := range 100 {
			store.Put("billing", fmt.Sprint(i))
			require.Equal(t, fmt.Sprint(i), e.want("leader").data["value"])
		}
		listen(t, client).present() // in the place of the slow one
	})
}

func TestAClientThatTakesNothingIsDroppedAlsoIfNothingHappens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newHost(t, memkv.New(), "a", &electionhttp.Options{Streams: 1})
		_, client := serve(t, a)
		slow := get(t, client)
		t.Cleanup(func() { _ = slow.Body.Close() })
		time.Sleep(5 * time.Second)
		refused := get(t, client)
		require.Equal(t, http.StatusServiceUnavailable, refused.StatusCode, "else this test shows nothing")
		require.NoError(t, refused.Body.Close())
		time.Sleep(30 * time.Second)
		listen(t, client).present()
	})
}

func TestCloseEndsTheStreamsSoThatAServerCanShutDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newHost(t, memkv.New(), "a", nil)
		server, client := serve(t, a)
		e := listen(t, client)
		time.Sleep(time.Second)
		a.Close()
		require.NoError(t, server.Shutdown(t.Context()))
		synctest.Wait()
		require.True(t, e.ended())
	})
}

// The watch shows that there is another heir, and nothing changes after it.
func TestAnHeirThatCouldNotBeReadIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memkv.New()
		a, b := newHost(t, store, "a", nil), newHost(t, store, "b", nil)
		a.run(0)
		_, client := serve(t, a)
		time.Sleep(time.Second)
		e := listen(t, client)
		e.present()
		a.read.On(kvfault.Get).Fail(errors.New("too busy"))
		b.run(0)
		time.Sleep(time.Second)
		a.read.Heal()
		require.Equal(t, "b", e.want("heir").data["id"])
	})
}
