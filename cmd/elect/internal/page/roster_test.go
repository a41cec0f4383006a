//go:build unix

package page_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/cmd/elect/internal/chronicle"
	"github.com/electkv/election/internal/testenv/browser"
	"github.com/electkv/election/kv"
)

// stands has a candidate take part in an election, with a record in its roster, until the test
// or leave ends that.
func (s *scene) stands(name string, options election.Options) (leave func()) {
	s.t.Helper()
	options.Roster, options.TTL = true, time.Minute
	candidate, err := election.New(s.store, name, &options)
	require.NoError(s.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = candidate.Run(ctx, func(ctx context.Context, _ *election.Term) error {
			<-ctx.Done()
			return nil
		})
	}()
	leave = func() {
		cancel()
		<-done
	}
	s.t.Cleanup(leave)
	return leave
}

// rows are what is said of the candidates of the first election.
const rows = "[...document.querySelectorAll('[role=listitem]')].map(r => r.firstChild.innerText.replace(/\\s+/g, ' ').trim())"

func TestABrowserShowsWhoTakesPart(t *testing.T) {
	s := open(t, "job")
	s.story.ReadRosters()
	s.stands("job", election.Options{ID: "anna", Value: "10.0.0.1"})
	s.led("job", "anna")
	s.stands("job", election.Options{ID: "ben"})
	s.sees("job", func(e chronicle.Election) bool { h, ok := e.Heir(); return ok && h.Owner.ID == "ben" })
	leave := s.stands("job", election.Options{ID: "cleo", Rank: 7})
	tab := browser.Start(t).Open(s.url(), desk)
	said := func(patterns ...string) {
		t.Helper()
		tests := []string{fmt.Sprintf("rows.length === %d", len(patterns))}
		for i, p := range patterns {
			tests = append(tests, fmt.Sprintf("new RegExp(%q).test(rows[%d])", p, i))
		}
		tab.Await(fmt.Sprintf("(rows => %s)(%s)", strings.Join(tests, " && "), rows))
	}
	const came = `came about [\d.]+ (ms|s|min) ago`
	anna, ben, cleo := "^anna leads "+came+" · value 10.0.0.1$", "^ben heir "+came+"$", "^cleo waits · rank 7 "+came+"$"
	said(anna, ben, cleo)
	s.stands("job", election.Options{ID: "ben"})
	second := "^ben waits another with this ID · " + came + "$"
	said(anna, ben, second, cleo)
	require.EqualValues(t, 3, tab.Eval("document.querySelectorAll('[role=listitem] .lane').length"))
	_, err := s.store.Create(t.Context(), kv.MemberName("job", "x"), kv.Record{Signature: "no candidate's", Value: "theirs", TTL: time.Hour})
	require.NoError(t, err)
	said(anna, ben, second, cleo, "^a foreign record value theirs$")
	leave()
	said(anna, ben, second, "^a foreign record value theirs$")
	s.requireFine(tab)
}

func TestACrowdIsCountedAndItsFirstAreShown(t *testing.T) {
	s := open(t, "job")
	s.elects("job", "c5000")
	s.led("job", "c5000")
	all := []chronicle.Candidate{}
	for i := range 10_000 {
		all = append(all, chronicle.Candidate{ID: fmt.Sprintf("c%04d", i), Value: strings.Repeat("v", 100), Since: time.Now()})
	}
	s.story.SetCandidates("job", all)
	body := s.ask(http.MethodGet, "/api/elections", http.Header{}).body
	require.Less(t, len(body), 10_000)
	var state struct {
		Elections []struct {
			CandidateCount int
			Candidates     []struct{ ID, State string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(body), &state))
	job := state.Elections[0]
	require.Equal(t, 10_000, job.CandidateCount)
	require.Len(t, job.Candidates, 20)
	require.Equal(t, "c0000 waits", job.Candidates[0].ID+" "+job.Candidates[0].State)
	require.Equal(t, "c5000 leads", job.Candidates[19].ID+" "+job.Candidates[19].State)

	tab := browser.Start(t).Open(s.url(), desk)
	tab.Await(says("Candidates: 20 of 10000"))
	require.EqualValues(t, 20, tab.Eval("document.querySelectorAll('[role=listitem]').length"))
	s.requireFine(tab)
}

func TestARosterThatCannotBeReadSaysWhyAndHidesNothing(t *testing.T) {
	s := open(t, "job")
	for i := range 1<<14 + 1 {
		_, err := s.store.Create(t.Context(), kv.MemberName("job", fmt.Sprint(i)), kv.Record{Signature: "no candidate's", TTL: time.Hour})
		require.NoError(t, err)
	}
	s.elects("job", "anna")
	s.story.ReadRosters()
	tab := browser.Start(t).Open(s.url(), desk)
	tab.Await(says("The roster cannot be read: election: members of \"job\": there are more than 16384 records"))
	tab.Await(says("anna leads for"))
	require.Equal(t, false, tab.Eval("document.querySelector('#list').innerText.includes('cannot be watched')"))
	s.requireFine(tab)
}
