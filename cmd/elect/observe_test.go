//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/snapshot"
)

// states decodes JSON lines, and wants exactly the documented fields in them. Status
// adds since when somebody leads.
func states(t *testing.T, text string) []snapshot.State {
	t.Helper()
	all := []snapshot.State{}
	for line := range strings.Lines(text) {
		if !strings.HasSuffix(line, "\n") {
			break // still being written
		}
		fields := map[string]any{}
		require.NoError(t, json.Unmarshal([]byte(line), &fields), line)
		names := []string{}
		for name := range fields {
			if name != "since" {
				names = append(names, name)
			}
		}
		require.ElementsMatch(t, []string{"time", "name", "id", "value", "token", "state"}, names)
		var s snapshot.State
		require.NoError(t, json.Unmarshal([]byte(line), &s))
		all = append(all, s)
	}
	return all
}

func TestWatchPrintsEachChange(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	w := start(t, "watch", "--store", p.store, "-o", "json", "job")
	lines := func(n int) []snapshot.State {
		t.Helper()
		eventually(t, fmt.Sprintf("%d lines", n), func() bool { return len(states(t, w.out.String())) >= n })
		return states(t, w.out.String())
	}
	first := lines(1)[0]
	require.Equal(t, "vacant", first.State)
	require.Equal(t, "job", first.Name)
	require.WithinDuration(t, time.Now(), first.Time, time.Minute)

	e := p.run(stay, "--id", "me", "--value", "a <b>\nc")
	leader := lines(2)[1]
	require.Equal(t, "leader", leader.State)
	require.Equal(t, "me", leader.ID)
	require.Equal(t, "a <b>\nc", leader.Value)
	rec, held := p.record()
	require.True(t, held)
	require.Equal(t, rec.Token, leader.Token)

	p.pid("child")
	e.send(t, syscall.SIGTERM)
	e.status(t)
	vacant := lines(3)[2]
	vacant.Time = time.Time{}
	require.Equal(t, snapshot.State{Name: "job", State: "vacant"}, vacant)

	w.send(t, syscall.SIGINT)
	require.Zero(t, w.status(t))
	require.Len(t, states(t, w.out.String()), 3)
}

func TestWatchInTextIsOneLineAChange(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.run(stay, "--id", "me", "--value", "two\nlines")
	p.pid("child")
	w := start(t, "watch", "--store", p.store, "job")
	rec, _ := p.record()
	want := fmt.Sprintf("  job  me leads, token %d, value \"two\\nlines\"\n", rec.Token)
	eventually(t, "the first line", func() bool { return strings.HasSuffix(w.out.String(), want) })
	w.send(t, syscall.SIGTERM)
	require.Zero(t, w.status(t))
}

func TestStatusSaysWhoLeadsAndWhetherAllAreLed(t *testing.T) {
	t.Parallel()
	p, begun := newPlace(t), time.Now().Truncate(time.Millisecond)
	p.run(stay, "--id", "me", "--value", "here")
	p.pid("child")
	require.NoError(t, os.WriteFile(filepath.Join(strings.TrimPrefix(p.store, "file://"), "safes", "foreign"), []byte("theirs"), 0o600))
	rec, _ := p.record()

	status, stdout, _ := finish(t, "status", "--store", p.store, "-o", "json", "job", "foreign")
	require.Zero(t, status)
	found := states(t, stdout)
	require.Len(t, found, 2)
	require.NotNil(t, found[0].Since)
	require.WithinRange(t, *found[0].Since, begun, time.Now())
	require.Nil(t, found[1].Since, "who knows?")
	require.Equal(t, []any{"job", "leader", "me", "here", rec.Token}, []any{found[0].Name, found[0].State, found[0].ID, found[0].Value, found[0].Token})
	require.Equal(t, []any{"foreign", "foreign", ""}, []any{found[1].Name, found[1].State, found[1].ID})

	status, stdout, _ = finish(t, "status", "--store", p.store, "job", "other")
	require.Equal(t, 1, status)
	require.Regexp(t, fmt.Sprintf("^"+
		"NAME   STATE   LEADER  TOKEN             VALUE  AGE\n"+
		"job    leader  me      %d  here   \\d+m?\\d*s\n"+
		"other  vacant  -       -                 -      -\n$", rec.Token), stdout)
}

func TestDoctorFindsAFileStoreFit(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	status, stdout, _ := finish(t, "doctor", "--store", p.store, "-o", "json")
	require.Zero(t, status)
	subjects := []string{}
	for line := range strings.Lines(stdout) {
		var f struct{ Level, Subject, Found string }
		require.NoError(t, json.Unmarshal([]byte(line), &f))
		require.Contains(t, []string{"OK", "WARN"}, f.Level)
		require.NotEmpty(t, f.Found)
		subjects = append(subjects, f.Subject)
	}
	require.Equal(t, []string{"failover", "round trip", "roster", "scope", "clock", "directory", "holder's death"}, subjects)
	left, err := os.ReadDir(filepath.Join(strings.TrimPrefix(p.store, "file://"), "safes"))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestDoctorSaysWhatIsAtANameOfAFileStore(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.run(stay)
	p.pid("child")
	require.NoError(t, os.WriteFile(filepath.Join(strings.TrimPrefix(p.store, "file://"), "safes", "foreign"), []byte("theirs"), 0o600))
	status, stdout, _ := finish(t, "doctor", "--store", p.store, "job", "vacant")
	require.Zero(t, status)
	require.Contains(t, stdout, "OK    name job: somebody leads\n")
	require.True(t, strings.HasSuffix(stdout, "OK    name vacant: nobody leads, and no lock is at its place\n"), stdout)
	status, stdout, _ = finish(t, "doctor", "--store", p.store, "foreign", "a\nb")
	require.Equal(t, 1, status)
	require.Contains(t, stdout, "FAIL  name foreign: something that no election wrote is at its place\n")
	require.Contains(t, stdout, `OK    "name a\nb": nobody leads`)
}

func TestDoctorFailsOnAStoreThatDoesNotAnswerOrCannotHonourTheTTL(t *testing.T) {
	t.Parallel()
	status, stdout, _ := finish(t, "doctor", "--store", "redis://127.0.0.1:1")
	require.Equal(t, 1, status)
	require.Contains(t, stdout, "FAIL  round trip: rediskv: ")
	status, stdout, _ = finish(t, "doctor", "--store", "consul://127.0.0.1:1", "--ttl", "2s")
	require.Equal(t, 1, status)
	require.Contains(t, stdout, "FAIL  TTL: consulkv: ")
}
