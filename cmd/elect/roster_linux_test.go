package main

import (
	"crypto/rand"
	"fmt"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/cmd/elect/internal/stores"
	"github.com/electkv/election/internal/testenv/browser"
	"github.com/electkv/election/kv"
)

func TestServeAndTopShowTheCandidatesThatKeepARoster(t *testing.T) {
	for name, url := range servers(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // mostly it waits
			p := newPlace(t)
			p.store = strings.Replace(url, "elect-test", "elect-test-"+strings.ToLower(rand.Text()), 1)
			ranked := func(id, word, rank string) *proc {
				return p.stand(id, word, "--ttl", "8s", "--grace", "1s", "--roster", "--succession", "rank", "--rank", rank, "--value", "at "+id)
			}
			anna := ranked("anna", "elected", "9")
			ranked("ben", "heir", "7")
			cleo := ranked("cleo", "waiting", "3")

			_, s := p.top(130, 30)
			s.shows(t, "1 election", "anna", "ben")
			s.press(t, "\r")
			listed := func(rows ...string) {
				t.Helper()
				head := fmt.Sprintf("CANDIDATES %d", len(rows))
				eventually(t, "in elect top: "+strings.Join(rows, ", "), func() bool {
					text := s.text()
					for _, row := range rows {
						id, is, _ := strings.Cut(row, " ")
						line := regexp.MustCompile(`(?m)^  ■ ` + id + ` +` + is + ` +~\d\S* (ms|s|min) ago +at ` + id + `$`)
						if !line.MatchString(text) {
							return false
						}
					}
					return strings.Contains(text, head)
				})
			}
			_, page := serve(t, "--store", p.store)
			tab := browser.Start(t).Open(page, browser.Screen{Width: 1280, Height: 800})
			shown := func(rows string) {
				t.Helper()
				tab.Await(fmt.Sprintf("[...document.querySelectorAll('.who')].map(w => w.innerText.replace(/\\s+/g, ' ').trim()).join(', ') === %q", rows))
			}
			listed("anna leads +9", "ben heir +7", "cleo waits +3")
			shown("anna leads · rank 9, ben heir · rank 7, cleo waits · rank 3")
			tab.Await("[...document.querySelectorAll('.more-rows .facts')].every(f => /^came about .* ago · value at (anna|ben|cleo)$/.test(f.innerText))")

			cleo.send(t, syscall.SIGKILL)
			listed("anna leads +9", "ben heir +7")
			shown("anna leads · rank 9, ben heir · rank 7")
			anna.send(t, syscall.SIGTERM)
			listed("ben leads +7")
			shown("anna, ben leads · rank 7")
		})
	}
}

// enter puts the record of a candidate into the roster of an election.
func enter(t *testing.T, store kv.Store, name, key string, rec kv.Record) kv.Record {
	t.Helper()
	rec.TTL = time.Minute
	rec, err := store.Create(t.Context(), kv.MemberName(name, key), rec)
	require.NoError(t, err)
	return rec
}

// rosterStore opens a store that keeps rosters.
func rosterStore(t *testing.T) (*place, kv.Store) {
	t.Helper()
	url := strings.Replace(servers(t)["etcd"], "elect-test", "elect-test-"+strings.ToLower(rand.Text()), 1)
	address, err := stores.Parse(url, os.Getenv)
	require.NoError(t, err)
	store, err := address.Open()
	require.NoError(t, err)
	t.Cleanup(func() { store.Close() })
	return &place{t: t, store: url}, store.KV
}

// What is in a roster must not be able to do anything to the terminal of those who look at it.
func TestTopShowsWhatIsInARosterAsText(t *testing.T) {
	t.Parallel()
	p, store := rosterStore(t)
	const evil = "\x1b]0;title\x07\x1b[2J\x1b[8mhidden\r\nline\u202e"
	enter(t, store, "job", "A-1", kv.Record{Signature: "id\u202e/A-1", Value: "value" + evil, Note: `{"rank":-7,"since":-1}`})
	enter(t, store, "job", "B-1", kv.Record{Signature: "anna/another key", Value: "theirs" + evil})
	_, s := p.top(130, 20, "job")
	s.shows(t, "1 election")
	s.press(t, "\r")
	const text = "�]0;title��[2J�[8mhidden��line�"
	s.shows(t, "CANDIDATES 2", "value"+text, "theirs"+text)
	require.Regexp(t, `(?m)^  ■ id� +waits +-7 +- +value`, s.text())
	require.Regexp(t, `(?m)^  \(a record\) +foreign +- +- +theirs`, s.text())
	require.Empty(t, s.strange())
}

// The rosters of so many elections are read once in a minute.
func TestTopReadsTheRosterOfTheElectionThatIsLookedAtFirst(t *testing.T) {
	t.Parallel()
	p, store := rosterStore(t)
	names := []string{}
	for i := range 300 {
		names = append(names, fmt.Sprintf("job-%03d", i))
	}
	_, s := p.top(130, 50, names...)
	s.shows(t, "300 elections")
	s.press(t, "G\r")
	s.shows(t, "job-299")
	for i := range 22 {
		enter(t, store, "job-299", fmt.Sprint("A-", i), kv.Record{Signature: fmt.Sprint("anna/A-", i), Note: "{}"})
	}
	s.shows(t, "CANDIDATES 22", "and 2 more")
	for i := range 4 {
		rec := enter(t, store, "job-299", "B-1", kv.Record{Signature: "ben/B-1", Note: "{}"})
		s.shows(t, "CANDIDATES 23")
		require.NoError(t, store.Delete(t.Context(), kv.MemberName("job-299", "B-1"), rec), i)
		s.shows(t, "CANDIDATES 22")
	}
}
