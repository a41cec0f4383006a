//go:build unix

package page_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/cmd/elect/internal/chronicle"
)

// An answer is a response that was read.
type answer struct {
	status int
	header http.Header
	body   string
}

// ask sends a request.
func (s *scene) ask(method, path string, header http.Header) answer {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url()+path, nil)
	require.NoError(s.t, err)
	req.Header = header.Clone()
	if host := header.Get("Host"); host != "" {
		req.Host = host
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	require.NoError(s.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	return answer{resp.StatusCode, resp.Header, string(body)}
}

func TestThePageIsEmbeddedAndLetsNothingElseIn(t *testing.T) {
	s := open(t)
	for path, kind := range map[string]string{
		"/": "text/html; charset=utf-8", "/page.css": "text/css; charset=utf-8", "/page.js": "text/javascript; charset=utf-8",
		"/api/elections": "application/json",
	} {
		got := s.ask(http.MethodGet, path, http.Header{})
		require.Equal(t, http.StatusOK, got.status, path)
		require.Equal(t, kind, got.header.Get("Content-Type"))
		require.NotEmpty(t, got.body)
		require.Regexp(t, `^default-src 'none'; script-src 'self';`, got.header.Get("Content-Security-Policy"))
		require.Equal(t, "nosniff", got.header.Get("X-Content-Type-Options"))
		require.Empty(t, got.header.Get("Access-Control-Allow-Origin"))
		require.Empty(t, got.header.Get("Set-Cookie"))
		if tag := got.header.Get("ETag"); tag != "" {
			got = s.ask(http.MethodGet, path, http.Header{"If-None-Match": {tag}})
			require.Equal(t, http.StatusNotModified, got.status)
			require.Empty(t, got.body)
		}
	}
	require.Equal(t, http.StatusNotFound, s.ask(http.MethodGet, "/static/index.html", http.Header{}).status)
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
		require.Equal(t, http.StatusMethodNotAllowed, s.ask(method, "/api/elections", http.Header{}).status, method)
	}
}

// A site may have its name mean 127.0.0.1 when the visitor's browser asks for the second time.
func TestAPageOfThisHostAnswersToItsOwnNamesOnly(t *testing.T) {
	s := open(t)
	_, port, err := net.SplitHostPort(s.addr)
	require.NoError(t, err)
	for host, want := range map[string]int{
		s.addr: http.StatusOK, "localhost:" + port: http.StatusOK, "LOCALHOST": http.StatusOK, "[::1]:" + port: http.StatusOK,
		"a.localhost": http.StatusOK, "127.1.2.3": http.StatusOK,
		"evil.example": http.StatusMisdirectedRequest, "localhost.evil.example:" + port: http.StatusMisdirectedRequest,
		"127.0.0.1.evil.example": http.StatusMisdirectedRequest, "10.0.0.1": http.StatusMisdirectedRequest, "notlocalhost": http.StatusMisdirectedRequest,
	} {
		got := s.ask(http.MethodGet, "/api/elections", http.Header{"Host": {host}})
		require.Equal(t, want, got.status, host)
		require.Equal(t, want == http.StatusOK, strings.Contains(got.body, `"elections"`), host)
	}
}

func TestAPageForAllNetworksAnswersToAllNames(t *testing.T) {
	s := open(t)
	s.leave()
	s.addr = "0.0.0.0:0"
	s.serve()
	require.Equal(t, http.StatusOK, s.ask(http.MethodGet, "/", http.Header{"Host": {"elections.example"}}).status)
}

func TestTheStateHasWhatIsKnownOfEachElection(t *testing.T) {
	s := open(t, "job", "other")
	s.empty("job")
	s.empty("other")
	first := s.elects("job", "anna")
	s.led("job", "anna")
	heir := s.elects("job:heir", "ben")
	second := s.handsOver("job", first, heir)
	s.led("job", "ben")
	s.story.Mark("job", chronicle.Mark{At: s.story.Since() + time.Second, Who: "ben", What: "is killed", Sign: "K"})
	s.loses("job", second)
	s.empty("job")

	body := s.ask(http.MethodGet, "/api/elections", http.Header{}).body
	var state struct {
		Store     string
		Window    float64
		Now       float64
		Clock     time.Time
		All       bool
		Elections []struct {
			Name   string
			Heir   string
			Spells []struct {
				State, ID, Token, End string
				From                  float64
				To                    *float64
			}
			Heirs []struct {
				ID string
				To *float64
			}
			Marks []struct {
				At              float64
				Who, What, Sign string
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(body), &state))
	require.Equal(t, "mem:", state.Store)
	require.InDelta(t, 60_000, state.Window, 0)
	require.WithinDuration(t, time.Now(), state.Clock, time.Minute)
	require.True(t, state.All)
	require.Len(t, state.Elections, 2)
	job, other := state.Elections[0], state.Elections[1]
	require.Equal(t, "job", job.Name)
	require.Equal(t, "other", other.Name)
	require.Len(t, other.Spells, 1)
	told := []string{}
	for i, sp := range job.Spells {
		told = append(told, strings.Join(strings.Fields(sp.State+" "+sp.ID+" "+sp.End), " "))
		require.Equal(t, sp.State == "leader", sp.Token != "")
		if i > 0 {
			require.InDelta(t, *job.Spells[i-1].To, sp.From, 0)
		}
	}
	require.Equal(t, []string{"vacant", "leader anna handed over", "leader ben over", "vacant"}, told)
	require.Nil(t, job.Spells[3].To)
	require.GreaterOrEqual(t, state.Now, job.Spells[3].From)
	require.Len(t, job.Heirs, 1)
	require.NotNil(t, job.Heirs[0].To)
	require.Empty(t, job.Heir)
	require.Len(t, job.Marks, 1)
	require.InDelta(t, 1000, job.Marks[0].At, 0)
	require.Equal(t, "K", job.Marks[0].Sign)
}

// A listener reads server-sent events.
type listener struct {
	t   *testing.T
	in  *bufio.Scanner
	end func()
}

type event struct {
	id   string
	all  bool
	now  float64
	over string
	of   []string // elections
}

// listen asks for events after the one with an id, or for all.
func (s *scene) listen(after string) *listener {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url()+"/api/events", nil)
	require.NoError(s.t, err)
	if after != "" {
		req.Header.Set("Last-Event-ID", after)
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	require.NoError(s.t, err)
	require.Equal(s.t, http.StatusOK, resp.StatusCode)
	require.Equal(s.t, "text/event-stream", resp.Header.Get("Content-Type"))
	end := func() {
		cancel()
		resp.Body.Close()
	}
	s.t.Cleanup(end)
	in := bufio.NewScanner(resp.Body)
	in.Buffer(nil, 1<<24)
	return &listener{t: s.t, in: in, end: end}
}

// next returns the next event.
func (l *listener) next() event {
	l.t.Helper()
	e := event{of: []string{}}
	for l.in.Scan() {
		field, value, _ := strings.Cut(l.in.Text(), ": ")
		switch field {
		case "id":
			e.id = value
		case "data":
			var state struct {
				All       bool
				Now       float64
				Over      string
				Elections []struct{ Name string }
			}
			require.NoError(l.t, json.Unmarshal([]byte(value), &state))
			e.all, e.now, e.over = state.All, state.Now, state.Over
			for _, of := range state.Elections {
				e.of = append(e.of, of.Name)
			}
		case "":
			return e
		}
	}
	require.FailNow(l.t, "the stream has ended")
	return event{}
}

func TestEventsTellEverythingFirstAndThenWhatChanges(t *testing.T) {
	s := open(t, "job", "other")
	s.empty("job")
	s.empty("other")
	l := s.listen("")
	first := l.next()
	require.True(t, first.all)
	require.Equal(t, []string{"job", "other"}, first.of)
	require.Equal(t, 1, s.page.Streams())

	s.elects("job", "anna")
	second := l.next()
	require.False(t, second.all)
	require.Equal(t, []string{"job"}, second.of)
	l.end()
	require.Eventually(t, func() bool { return s.page.Streams() == 0 }, 10*time.Second, 5*time.Millisecond)

	s.elects("other", "anna")
	s.led("other", "anna")
	again := s.listen(second.id).next()
	require.False(t, again.all, "it goes on where it was")
	require.Equal(t, []string{"other"}, again.of)
	_, count, _ := strings.Cut(second.id, ".")
	require.True(t, s.listen("ANOTHER."+count).next().all, "another run of the program has told that")
	require.True(t, s.listen("nonsense").next().all)
}

func TestASilentStreamIsHeardOf(t *testing.T) {
	t.Parallel() // it waits
	s := open(t, "job")
	s.empty("job")
	l := s.listen("")
	first := l.next()
	beat := l.next()
	require.Empty(t, beat.of)
	require.False(t, beat.all)
	require.Greater(t, beat.now, first.now)
}

func TestTheEndIsToldAndTheClockStands(t *testing.T) {
	s := open(t, "job")
	s.empty("job")
	l := s.listen("")
	l.next()
	s.page.End("done", true)
	over := l.next()
	require.Equal(t, "done", over.over)
	s.page.End("kept", true)
	kept := l.next()
	require.Equal(t, "kept", kept.over)
	require.InDelta(t, over.now, kept.now, 1)
}

func TestTooManyStreamsAreTurnedAway(t *testing.T) {
	s := open(t, "job")
	streams := []*listener{}
	for range 64 {
		streams = append(streams, s.listen(""))
	}
	got := s.ask(http.MethodGet, "/api/events", http.Header{})
	require.Equal(t, http.StatusServiceUnavailable, got.status)
	require.Contains(t, got.body, "close one")
	streams[0].end()
	require.Eventually(t, func() bool { return s.page.Streams() < 64 }, 10*time.Second, 5*time.Millisecond)
	s.listen("").next()
}

func TestTheEndOfThePageEndsItsStreams(t *testing.T) {
	s := open(t, "job")
	l := s.listen("")
	l.next()
	begun := time.Now()
	s.leave()
	for l.in.Scan() {
	}
	require.Less(t, time.Since(begun), 30*time.Second)
	require.Zero(t, s.page.Streams())
}
