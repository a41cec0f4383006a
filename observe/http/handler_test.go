package electionhttp_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv/kvfault"
	"github.com/electkv/election/observe/http"
)

const ttl = 10 * time.Second

// A host is a candidate with its handler. The candidate's requests can be made to fail, and the
// handler's.
type host struct {
	*electionhttp.Handler
	t         *testing.T
	candidate *election.Candidate
	own       *kvfault.Link // as the candidate sees the store
	read      *kvfault.Link // as the handler does
}

// newHost returns one that ends with the test.
func newHost(t *testing.T, store *memkv.Store, id string, opts *electionhttp.Options, change ...func(*election.Options)) *host {
	t.Helper()
	h := &host{t: t, own: kvfault.Wrap(store), read: kvfault.Wrap(store)}
	o := &election.Options{ID: id, TTL: ttl, Requests: true}
	for _, c := range change {
		c(o)
	}
	var err error
	h.candidate, err = election.New(h.own.Store, "billing", o)
	require.NoError(t, err)
	h.Handler, err = electionhttp.New(h.candidate, h.read.Store, opts)
	require.NoError(t, err)
	t.Cleanup(h.Close)
	return h
}

// run has the candidate compete until it is stopped, or the test ends. Its work goes on for a
// while after it was told to stop.
func (h *host) run(goesOn time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(h.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = h.candidate.Run(ctx, func(ctx context.Context, _ *election.Term) error {
			<-ctx.Done()
			time.Sleep(goesOn)
			return nil
		})
	}()
	stop = func() {
		cancel()
		<-done
	}
	h.t.Cleanup(stop)
	synctest.Wait()
	return stop
}

// ask makes a request.
func ask(h http.Handler, method, target string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// code returns the status of a GET.
func (h *host) code(target string) int { return ask(h, http.MethodGet, target).Code }

// body returns the JSON that a GET is answered with.
func (h *host) body(target string) map[string]any {
	h.t.Helper()
	w := ask(h, http.MethodGet, target)
	require.Equal(h.t, "application/json", w.Header().Get("Content-Type"))
	fields := map[string]any{}
	require.NoError(h.t, json.Unmarshal(w.Body.Bytes(), &fields), w.Body.String())
	return fields
}

func TestBadArgumentsAreRefused(t *testing.T) {
	c, err := election.New(memkv.New(), "billing", nil)
	require.NoError(t, err)
	for want, refused := range map[string]func() error{
		"candidate is nil": func() error { _, err := electionhttp.New(nil, memkv.New(), nil); return err },
		"store is nil":     func() error { _, err := electionhttp.New(c, nil, nil); return err },
		"a header cannot carry": func() error {
			_, err := electionhttp.New(c, memkv.New(), &electionhttp.Options{Token: "a b"})
			return err
		},
		"-1 streams": func() error {
			_, err := electionhttp.New(c, memkv.New(), &electionhttp.Options{Streams: -1})
			return err
		},
	} {
		require.ErrorContains(t, refused(), want)
	}
}

func TestEachMethodAndPathHasTheRightStatus(t *testing.T) {
	const token = "xyzzy"
	synctest.Test(t, func(t *testing.T) {
		store := memkv.New()
		off, on := newHost(t, store, "off", nil), newHost(t, store, "on", &electionhttp.Options{Token: token})
		for _, c := range []struct {
			of             *host
			method, target string
			authorization  string
			want           int
			allow          string
		}{
			{off, "GET", "/leader", "", 503, ""},
			{off, "HEAD", "/leader", "", 503, ""},
			{off, "OPTIONS", "/leader", "", 503, "GET, HEAD, OPTIONS"},
			{off, "GET", "/leader?x=%zz", "", 503, ""},
			{off, "POST", "/leader", "", 405, "GET, HEAD, OPTIONS"},
			{off, "PUT", "/", "", 405, "GET, HEAD, OPTIONS"},
			{off, "BREW", "/status", "", 405, "GET, HEAD, OPTIONS"},
			{off, "TRACE", "/livez", "", 405, "GET, HEAD, OPTIONS"},
			{off, "OPTIONS", "/events", "", 405, "GET, HEAD"},
			{off, "HEAD", "/events", "", 200, ""},
			{off, "OPTIONS", "/livez", "", 200, "GET, HEAD, OPTIONS"},
			{off, "GET", "/Leader", "", 404, ""},
			{off, "GET", "/leader/", "", 404, ""},
			{off, "GET", "//leader", "", 404, ""},
			{off, "GET", "/x/../leader", "", 404, ""},
			{off, "GET", "/%6ceader%2f", "", 404, ""},
			{off, "POST", "/x", "", 404, ""},
			{off, "GET", "/resign", "", 405, "POST"},
			{off, "OPTIONS", "/transfer", "", 405, "POST"},
			{off, "POST", "/resign", "", 403, ""},
			{off, "POST", "/transfer?to=on", "Bearer ", 403, ""},
			{off, "POST", "/resign", "Bearer " + token, 403, ""},
			{on, "GET", "/resign", "Bearer " + token, 405, "POST"},
			{on, "POST", "/resign", "", 401, ""},
			{on, "POST", "/resign", token, 401, ""},
			{on, "POST", "/resign", "Basic " + token, 401, ""},
			{on, "POST", "/resign", "Bearer", 401, ""},
			{on, "POST", "/resign", "Bearer  " + token, 401, ""},
			{on, "POST", "/resign", "Bearer " + token + "x", 401, ""},
			{on, "POST", "/transfer?to=off&access_token=" + token, "", 401, ""},
			{on, "POST", "/resign", "bearer " + token, 409, ""},
			{on, "POST", "/resign?any", "Bearer " + token, 409, ""},
			{on, "POST", "/transfer", "Bearer " + token, 400, ""},
			{on, "POST", "/transfer?to=", "Bearer " + token, 400, ""},
			{on, "POST", "/transfer?to=a&to=b", "Bearer " + token, 400, ""},
			{on, "POST", "/transfer?to=a%0ab", "Bearer " + token, 400, ""},
			{on, "POST", "/transfer?to=%ff", "Bearer " + token, 400, ""},
			{on, "POST", "/transfer?to=" + strings.Repeat("a", 513), "Bearer " + token, 400, ""},
			{on, "POST", "/transfer?to=off", "Bearer " + token, 409, ""},
		} {
			w := ask(c.of, c.method, c.target, "Authorization", c.authorization)
			name := c.method + " " + c.target + " " + c.authorization
			require.Equal(t, c.want, w.Code, name)
			require.Equal(t, "no-store", w.Header().Get("Cache-Control"), name)
			require.Equal(t, c.want == 401, w.Header().Get("WWW-Authenticate") != "", name)
			require.Empty(t, w.Header().Get("Location"), name)
			if c.want == 405 {
				require.Equal(t, c.allow, w.Header().Get("Allow"), name)
			}
			if 400 <= c.want && c.want < 500 {
				var failure struct{ Error string }
				require.NoError(t, json.Unmarshal(w.Body.Bytes(), &failure), name)
				require.NotEmpty(t, failure.Error, name)
				require.NotContains(t, failure.Error, token, name)
			}
		}
	})
}

func TestAHandlerWorksBelowAPrefix(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, memkv.New(), "a", nil)
		h.run(0)
		below := http.StripPrefix("/election", h)
		for target, want := range map[string]int{
			"/election/leader": 200, "/election/": 200, "/election": 200, "/election/heir": 503, "/election//leader": 404, "/leader": 404,
		} {
			w := ask(below, http.MethodGet, target)
			require.Equal(t, want, w.Code, target)
		}
		require.JSONEq(t, `{"name":"a"}`, ask(below, http.MethodGet, "/election").Body.String())
	})
}

func TestAServerAnswersHEADWithoutABody(t *testing.T) {
	c, err := election.New(memkv.New(), "billing", nil)
	require.NoError(t, err)
	h, err := electionhttp.New(c, memkv.New(), nil)
	require.NoError(t, err)
	defer h.Close()
	server := httptest.NewServer(h)
	defer server.Close()
	for _, method := range []string{http.MethodHead, http.MethodGet, http.MethodOptions} {
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL+"/leader", nil)
		require.NoError(t, err)
		resp, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, http.StatusServiceUnavailable, resp.StatusCode)
		require.Equal(t, method == http.MethodHead, len(body) == 0, method)
	}
	http.DefaultClient.CloseIdleConnections()
}

func FuzzARequestWithoutTheTokenWritesNothing(f *testing.F) {
	for _, seed := range [][4]string{
		{"POST", "/resign", "any", "Bearer x"}, {"POST", "/transfer", "to=b", "Bearer"}, {"GET", "/", "", ""},
		{"HEAD", "/status", "%", "Basic eA=="}, {"OPTIONS", "*", "", ""}, {"CONNECT", "/leader", "leader", ""}, {"GET", "/readyz", "leader", ""},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	f.Fuzz(func(t *testing.T, method, path, query, authorization string) {
		store := kvfault.Wrap(memkv.New())
		c, err := election.New(store.Store, "billing", &election.Options{TTL: ttl})
		require.NoError(t, err)
		h, err := electionhttp.New(c, store.Store, &electionhttp.Options{Token: "xyzzy-plugh"})
		require.NoError(t, err)
		defer h.Close()
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Method, r.URL.Path, r.URL.RawQuery = method, path, query
		r.Header.Set("Authorization", authorization)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond) // of /events
		defer cancel()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r.WithContext(ctx))
		require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
		require.Contains(t, []int{200, 400, 401, 404, 405, 503}, w.Code)
		if method == http.MethodPost {
			require.NotEqual(t, http.StatusOK, w.Code)
		}
		for _, op := range []kvfault.Op{kvfault.Create, kvfault.Swap, kvfault.Refresh, kvfault.Delete} {
			require.Zero(t, store.Calls(op))
		}
	})
}
