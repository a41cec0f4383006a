//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// answering returns where elect answers over HTTP, by its log.
func (p *proc) answering(t *testing.T) string {
	t.Helper()
	line := regexp.MustCompile(` answering over HTTP address=(\S+)\n`)
	eventually(t, "elect answers over HTTP", func() bool { return line.MatchString(p.err.String()) })
	return line.FindStringSubmatch(p.err.String())[1]
}

// A caller asks an elect over HTTP.
type caller struct {
	t      *testing.T
	client *http.Client
	url    string
}

// callerOf returns one for an elect that listens on TCP.
func callerOf(t *testing.T, e *proc) *caller {
	t.Helper()
	return &caller{t, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 30 * time.Second}, "http://" + e.answering(t)}
}

// do makes a request, and returns the answer.
func (c *caller) do(method, path, token string) (code int, body string) {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), method, c.url+path, nil)
	require.NoError(c.t, err)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := c.client.Do(r)
	require.NoError(c.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(c.t, err)
	return resp.StatusCode, string(text)
}

func (c *caller) get(path string) (code int, body string) {
	c.t.Helper()
	return c.do(http.MethodGet, path, "")
}

// code returns the status of a GET.
func (c *caller) code(path string) int {
	c.t.Helper()
	code, _ := c.get(path)
	return code
}

// local has elect answer on any port.
const local = "--http=127.0.0.1:0"

func TestRunAnswersOverHTTP(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	first := p.run(stay, local, "--id", "one")
	p.pid("child")
	second := p.run(stay, local, "--id", "two")
	second.says(t, isHeir)
	leader, heir := callerOf(t, first), callerOf(t, second)
	for path, codes := range map[string][2]int{
		"/leader": {200, 503}, "/heir": {503, 200}, "/standby": {503, 200}, "/livez": {200, 200}, "/readyz": {200, 200}, "/readyz?leader": {200, 503},
		"/nothing": {404, 404},
	} {
		require.Equal(t, codes[0], leader.code(path), path)
		require.Equal(t, codes[1], heir.code(path), path)
	}
	for _, c := range []*caller{leader, heir} {
		code, body := c.get("/")
		require.Equal(t, 200, code)
		require.JSONEq(t, `{"name":"one"}`, body)
		code, _ = c.do(http.MethodPost, "/resign", "xyzzy")
		require.Equal(t, 403, code, "off without a token")
	}

	_, body := heir.get("/status")
	status, stdout, _ := finish(t, "status", "--store", p.store, "-o", "json", "job")
	require.Zero(t, status)
	want, got := map[string]any{}, map[string]any{}
	require.NoError(t, json.Unmarshal([]byte(stdout), &want))
	require.NoError(t, json.Unmarshal([]byte(body), &got))
	self := got["self"].(map[string]any)
	require.Equal(t, []any{"two", "heir"}, []any{self["id"], self["role"]})
	delete(got, "self")
	delete(got, "time")
	delete(want, "time")
	require.Equal(t, want, got)

	first.send(t, syscall.SIGTERM)
	require.Equal(t, 143, first.status(t))
	eventually(t, "the heir leads", func() bool { return heir.code("/leader") == 200 })
	_, err := net.Dial("tcp", strings.TrimPrefix(leader.url, "http://"))
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
}

func TestRunAnswersOnAUnixSocketAndTakesThePlaceOfOneThatWasKilled(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	socket := filepath.Join(p.notes, "elect.sock")
	e := p.run(stay, "--http", "unix:"+socket)
	require.Equal(t, socket, e.answering(t))
	p.pid("child")
	c := &caller{t, &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
	}}, "http://elect"}
	require.Equal(t, 200, c.code("/leader"))

	status, _, stderr := finish(t, "run", "--store", p.store, "--http", "unix:"+socket, "job", "--", "true")
	require.Equal(t, 125, status)
	require.Equal(t, "elect: --http \"unix:"+socket+"\": another process answers there; use another path\n", stderr)
	require.Equal(t, 200, c.code("/leader"), "it still does")

	e.send(t, syscall.SIGKILL)
	e.status(t)
	require.FileExists(t, socket, "else this test shows nothing")
	e = p.run(stay, "--http", "unix:"+socket)
	e.answering(t)
	require.Equal(t, 200, c.code("/livez"))
	eventually(t, "it leads", func() bool { return c.code("/leader") == 200 })
	p.pid("child")
	e.send(t, syscall.SIGTERM)
	e.status(t)
	require.NoFileExists(t, socket)
}

func TestRunRefusesAnAddressThatItCannotAnswerAt(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, []byte("mine"), 0o600))
	const use = "; use host:port, :port or unix:/path\n"
	for address, want := range map[string]string{
		"":                                  "is no address" + use,
		"4040":                              "is no address" + use,
		"localhost":                         "is no address" + use,
		"http://localhost:4040":             "is no address" + use,
		"::1:4040":                          "is no address" + use,
		"localhost:http":                    `port "http" is not a number from 0 to 65535` + use,
		"localhost:":                        `port "" is not a number from 0 to 65535` + use,
		":65536":                            `port "65536" is not a number from 0 to 65535` + use,
		":-1":                               `port "-1" is not a number from 0 to 65535` + use,
		"192.0.2.1:0":                       "bind: cannot assign requested address\n",
		taken.Addr().String():               "bind: address already in use\n",
		"unix:":                             "is not an absolute path; use unix:/path\n",
		"unix:elect.sock":                   "is not an absolute path; use unix:/path\n",
		"unix:@elect":                       "is not an absolute path; use unix:/path\n",
		"unix:/" + strings.Repeat("x", 103): "has a path of 104 bytes, and a socket's has at most 103; use a shorter one\n",
		"unix:/no/such/folder/elect.sock":   "bind: no such file or directory\n",
		"unix:" + file:                      "exists and is not a socket; use another path\n",
	} {
		status, stdout, stderr := finish(t, "run", "--store", "mem:", "--http", address, "job", "--", "true")
		require.Equal(t, 125, status, address)
		require.Empty(t, stdout)
		require.Equal(t, fmt.Sprintf("elect: --http %q: %s", address, want), stderr)
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "mine", string(text))
}

func TestRunRefusesATokenThatNobodyCouldSend(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for text, want := range map[string]string{" \n": " is empty: ", "two words\n": " must contain one word of printable ASCII", "ü": " must contain one word of printable ASCII"} {
		file := filepath.Join(dir, "token")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		status, _, stderr := finish(t, "run", "--store", "mem:", local, "--http-token-file", file, "job", "--", "true")
		require.Equal(t, 125, status)
		require.Contains(t, stderr, "elect: --http-token-file "+file+want)
		require.Equal(t, 1, strings.Count(stderr, "\n"))
	}
	status, _, stderr := finish(t, "run", "--store", "mem:", local, "--http-token-file", filepath.Join(dir, "none"), "job", "--", "true")
	require.Equal(t, 125, status)
	require.Contains(t, stderr, "no such file or directory")
}

func TestAPostWithTheTokenChangesTheLeader(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	file := filepath.Join(p.notes, "token")
	require.NoError(t, os.WriteFile(file, []byte("xyzzy\n"), 0o600))
	first := p.run(`trap 'sleep 0.5; echo >"$1/drained"; exit 0' TERM; `+heed, local, "--http-token-file", file, "--id", "one")
	p.pid("child")
	second := p.run(stay, local, "--http-token-file", file, "--id", "two")
	second.says(t, isHeir)
	one, two := callerOf(t, first), callerOf(t, second)
	code, body := one.do(http.MethodPost, "/resign", "plugh")
	require.Equal(t, 401, code, body)
	code, body = two.do(http.MethodPost, "/resign", "xyzzy")
	require.Equal(t, 409, code, body)
	require.Equal(t, 200, one.code("/leader"), "nothing has happened")

	code, body = one.do(http.MethodPost, "/resign", "xyzzy")
	require.Equal(t, 200, code, body)
	require.True(t, p.has("drained"), "it is answered when COMMAND has stopped")
	require.JSONEq(t, `{"name":"two"}`, body)
	eventually(t, "the second leads", func() bool { return two.code("/leader") == 200 })
	first.says(t, isHeir)
	code, body = one.do(http.MethodPost, "/transfer?to=one", "xyzzy")
	require.Equal(t, 200, code, body)
	require.JSONEq(t, `{"name":"one"}`, body)
	require.NotContains(t, first.err.String()+second.err.String(), "xyzzy")
}

func TestRunAnswersWhileItWaitsForItsStore(t *testing.T) {
	for url, known := range map[string]string{"redis://127.0.0.1:1": "connection refused", "etcd://u:p@127.0.0.1:1": "waiting for the store"} {
		t.Run(url, func(t *testing.T) {
			t.Parallel() // mostly it waits
			e := start(t, "run", "--store", url, local, "job", "--", "true")
			c := callerOf(t, e)
			e.says(t, "waiting for the store")
			require.Equal(t, 200, c.code("/livez"), "a restart mends nothing")
			for _, path := range []string{"/leader", "/heir", "/standby", "/readyz", "/", "/status"} {
				require.Equal(t, 503, c.code(path), path)
			}
			_, body := c.get("/readyz")
			require.Contains(t, body, known)
			e.send(t, syscall.SIGTERM)
			require.Equal(t, 143, e.status(t))
		})
	}
}

func TestRunEndsThoughSomebodyFollowsItsEvents(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	e := p.run(stay, local, "--id", "me")
	p.pid("child")
	c := callerOf(t, e)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.url+"/events", nil)
	require.NoError(t, err)
	resp, err := c.client.Do(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	seen := ""
	for !strings.Contains(seen, `"id":"me"`) || !strings.Contains(seen, "event: role") {
		require.True(t, lines.Scan(), seen)
		seen += lines.Text() + "\n"
	}
	e.send(t, syscall.SIGTERM)
	told := time.Now()
	require.Equal(t, 143, e.status(t))
	require.Less(t, time.Since(told), 30*time.Second)
	for lines.Scan() {
		seen += lines.Text()
	}
	require.NoError(t, lines.Err(), "in good order")
}

func TestWithoutACommandTheLeaseIsKeptUntilThoseWhoAskHaveHadTheGrace(t *testing.T) {
	t.Parallel()
	const grace = 2 * time.Second
	p := newPlace(t)
	file := filepath.Join(p.notes, "token")
	require.NoError(t, os.WriteFile(file, []byte("xyzzy\n"), 0o600))
	stand := func(id string) (*proc, *caller) {
		e := start(t, "run", "--store", p.store, local, "--http-token-file", file, "--id", id, "--ttl", "8s", "--grace", grace.String(), "job")
		return e, callerOf(t, e)
	}
	first, one := stand("one")
	eventually(t, "the first leads", func() bool { return one.code("/leader") == 200 })
	second, two := stand("two")
	second.says(t, isHeir)
	// Yes is when the one that leads was last asked and would answer yes.
	watch := func(yes time.Time, before, after *caller) {
		t.Helper()
		eventually(t, "the answer is no", func() bool {
			asked := time.Now()
			if before.code("/leader") != 200 {
				return true
			}
			yes = asked
			return false
		})
		eventually(t, "the other leads", func() bool { return after.code("/leader") == 200 })
		require.GreaterOrEqual(t, time.Since(yes), grace)
	}
	yes := time.Now()
	go one.do(http.MethodPost, "/resign", "xyzzy")
	watch(yes, one, two)
	first.says(t, isHeir)
	yes = time.Now()
	require.NoError(t, second.Process.Signal(syscall.SIGTERM))
	watch(yes, two, one)
	require.Equal(t, 143, second.status(t))
	first.send(t, syscall.SIGTERM)
	require.Equal(t, 143, first.status(t))
	_, held := p.record()
	require.False(t, held)
}

func TestWithoutACommandOnceEndsWithTheTerm(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	for _, c := range []struct {
		end    func(e *proc)
		status int
		says   string
	}{
		{func(*proc) { p.remove() }, 125, "elect: leadership lost: the record is gone"},
		{func(*proc) { finish(t, "resign", "--store", p.store, "job") }, 0, "the term is over"},
		{func(e *proc) { e.send(t, syscall.SIGTERM) }, 143, "the term is over"},
	} {
		for _, flag := range []string{"--once", "--try"} {
			e := start(t, "run", "--store", p.store, local, "--ttl", "5m", "--grace", "100ms", flag, "job")
			asks := callerOf(t, e)
			eventually(t, "it leads", func() bool { return asks.code("/leader") == 200 })
			c.end(e)
			require.Equal(t, c.status, e.status(t), flag)
			require.Contains(t, e.err.String(), c.says)
		}
	}
}
