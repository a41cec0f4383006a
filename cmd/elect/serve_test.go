//go:build unix

package main

import (
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/testenv/browser"
)

// serve starts elect serve at any port, and returns the URL of its page.
func serve(t *testing.T, args ...string) (p *proc, url string) {
	t.Helper()
	p = start(t, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	return p, p.pageURL(t)
}

// pageURL waits until the URL of a page is printed.
func (p *proc) pageURL(t *testing.T) string {
	t.Helper()
	eventually(t, "the page's URL", func() bool { return strings.Contains(p.out.String(), "\n") })
	url, _, _ := strings.Cut(p.out.String(), "\n")
	require.Regexp(t, `^http://127\.0\.0\.1:\d+$`, url)
	return url
}

// shown is what a page is told of an election, in part.
type shown struct {
	Name           string
	Heir           string
	CandidateCount int
	Spells         []struct{ State, ID, End string }
}

func (s shown) now() string {
	if len(s.Spells) == 0 {
		return ""
	}
	last := s.Spells[len(s.Spells)-1]
	return last.State + " " + last.ID
}

// end returns how the first term of a candidate ended.
func (s shown) end(id string) string {
	for _, spell := range s.Spells {
		if spell.ID == id {
			return spell.End
		}
	}
	return "it never led"
}

// elections returns what a page shows.
func elections(t *testing.T, url string) []shown {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/api/elections", nil)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	var state struct{ Elections []shown }
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&state))
	return state.Elections
}

func names(all []shown) []string {
	found := []string{}
	for _, e := range all {
		found = append(found, e.Name)
	}
	return found
}

func TestServeShowsAKilledLeaderAndItsSuccessor(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	s, url := serve(t, "--store", p.store)
	require.Empty(t, elections(t, url))
	first := p.stand("anna", "elected")
	eventually(t, "it is found", func() bool { all := elections(t, url); return len(all) == 1 && all[0].now() == "leader anna" })
	p.stand("ben", "heir")
	eventually(t, "the heir", func() bool { return elections(t, url)[0].Heir == "ben" })
	first.send(t, syscall.SIGKILL)
	eventually(t, "the next", func() bool { return elections(t, url)[0].now() == "leader ben" })
	require.Equal(t, "lost", elections(t, url)[0].end("anna"))
	p.stand("cleo", "heir")
	status, _, _ := finish(t, "resign", "--store", p.store, p.name)
	require.Zero(t, status)
	eventually(t, "the hand-over", func() bool { return elections(t, url)[0].now() == "leader cleo" })
	require.Equal(t, "handed over", elections(t, url)[0].end("ben"))

	s.send(t, syscall.SIGTERM)
	require.Zero(t, s.status(t))
	require.Empty(t, s.err.String())
}

func TestServeShowsWhatIsAskedFor(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	for _, name := range []string{"team-a/x", "team-a/y", "team-b/z"} {
		p.name = name
		p.run(stay)
	}
	eventually(t, "all lead", func() bool {
		status, _, _ := finish(t, "status", "--store", p.store, "team-a/x", "team-a/y", "team-b/z")
		return status == 0
	})
	_, all := serve(t, "--store", p.store)
	_, some := serve(t, "--store", p.store, "--prefix", "team-a/")
	_, named := serve(t, "--store", p.store, "team-b/z", "nobody's")
	eventually(t, "all are shown", func() bool { return len(elections(t, all)) == 3 })
	eventually(t, "some are shown", func() bool { return len(elections(t, some)) == 2 })
	require.Equal(t, []string{"team-a/x", "team-a/y"}, names(elections(t, some)))
	require.Equal(t, []string{"nobody's", "team-b/z"}, names(elections(t, named)))
}

func TestServeWarnsIfOthersThanThisHostCanOpenThePage(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	s := start(t, "serve", "--store", p.store, "--listen", ":0")
	s.pageURL(t)
	s.says(t, "which asks for no password")
	quiet, _ := serve(t, "--store", p.store)
	require.Empty(t, quiet.err.String())
}

func TestServeSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer busy.Close()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--prefix", "a", "x"}, "elect: NAME and --prefix exclude each other: name elections, or list those that begin with PREFIX\n"},
		{[]string{"x:heir"}, "elect: NAME \"x:heir\" is reserved for the heir of \"x\": name the election itself\n"},
		{[]string{""}, "elect: NAME is empty\n"},
		{[]string{"--listen", "8080"}, "elect: listen at \"8080\", which is no address: use host:port, such as 127.0.0.1:3532, or :3532 for all networks\n"},
		{[]string{"--listen", busy.Addr().String()}, "elect: listen at " + busy.Addr().String() + ": the port is in use: use another, or port 0 for any that is free\n"},
		{[]string{"--listen", "127.0.0.1:0", "--store", "mem:"}, "elect: store mem: cannot list its elections: name them\n"},
		{[]string{"--listen", "127.0.0.1:0", "--store", "redis://127.0.0.1:1"}, "elect: store redis://127.0.0.1:1 cannot be used: rediskv: get \"name\": dial tcp 127.0.0.1:1: connect: connection refused\n"},
	} {
		status, stdout, stderr := finish(t, append([]string{"serve", "--store", p.store}, c.args...)...)
		require.Equal(t, 125, status, c.args)
		require.Empty(t, stdout)
		require.Equal(t, c.want, stderr, c.args)
	}
}

func TestTheDemoIsShownOnAPage(t *testing.T) {
	t.Parallel()
	tmp := t.TempDir()
	b := browser.Start(t) // before the demo, which begins without it after a while
	var terms any
	requireVerdict(t, tmp, func(p *proc) {
		tab := b.Open(p.pageURL(t), browser.Screen{Width: 1280, Height: 800})
		for _, seen := range []string{
			"[...document.querySelectorAll('.who span')].some(s => s.textContent === 'killed')",
			"document.querySelectorAll('.lane.small .bar.asleep').length === 1",
			"['K', 'S', 'C'].every(sign => [...document.querySelectorAll('.lane.marked .mark')].some(m => m.textContent === sign))",
			"/^The demo is over. .*Promises kept: one leader at a time, /.test(document.querySelector('#notice').textContent)",
		} {
			tab.Await(seen)
		}
		require.EqualValues(t, 3, tab.Eval("document.querySelectorAll('.who').length"))
		require.Equal(t, "over", tab.Eval("document.querySelector('#link').textContent"))
		terms = tab.Eval("document.querySelectorAll('tbody tr').length")
		require.Empty(t, tab.Wrongs())
		p.says(t, "The page stays until it is closed, or Ctrl-C.")
		tab.Close()
	}, "--serve=127.0.0.1:0")
	require.EqualValues(t, 3, terms)
	requireEmpty(t, tmp)
	requireNoCandidates(t, tmp)
}

func TestTheDemosPageEndsWithCtrlC(t *testing.T) {
	t.Parallel()
	tmp := t.TempDir()
	b := browser.Start(t) // before the demo, which begins without it after a while
	requireVerdict(t, tmp, func(p *proc) {
		b.Open(p.pageURL(t), browser.Screen{Width: 800, Height: 600})
		p.says(t, "The page stays until it is closed, or Ctrl-C.")
		p.send(t, syscall.SIGINT)
	}, "--serve=127.0.0.1:0", "--ttl", "2s")
	requireEmpty(t, tmp)
}

func TestTheDemoBeginsWithoutAnAudience(t *testing.T) {
	t.Parallel() // it waits
	tmp := t.TempDir()
	requireVerdict(t, tmp, nil, "--serve=127.0.0.1:0", "--ttl", "2s")
	requireEmpty(t, tmp)
}
