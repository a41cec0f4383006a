//go:build unix

package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLogLinesBeginWithDateAndTime(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	e := p.run("true", "--ttl", "4s")
	require.Zero(t, e.status(t))
	for line := range strings.Lines(e.err.String()) {
		stamp, ok := strings.CutPrefix(line, "elect: ")
		require.True(t, ok, line)
		at, err := time.ParseInLocation(dateAndTime, stamp[:len(dateAndTime)], time.Local)
		require.NoError(t, err)
		require.WithinDuration(t, time.Now(), at, time.Minute)
	}
}

func TestTheLogSaysFirstOfWhichVersionItIs(t *testing.T) {
	t.Parallel()
	var b struct{ Version string }
	_, stdout, _ := finish(t, "version", "-o", "json")
	require.NoError(t, json.Unmarshal([]byte(stdout), &b))
	p := newPlace(t)
	e := p.run("true", "--ttl", "4s")
	require.Zero(t, e.status(t))
	w := start(t, "watch", "--store", p.store, "job")
	w.says(t, " watching election=job")
	for name, log := range map[string]string{"run": e.err.String(), "watch": w.err.String()} {
		first, _, _ := strings.Cut(withoutWarning(log), "\n")
		require.Contains(t, first, " store="+p.store+" version="+b.Version, name)
	}
}

func TestEachLogLineIsJSONIfThatIsAskedFor(t *testing.T) {
	t.Parallel()
	type entry struct {
		Time              time.Time
		Level, Msg, Error string
		Election, Store   string
		Status            int
	}
	entries := func(text string) (all []entry) {
		for line := range strings.Lines(text) {
			var en entry
			require.NoError(t, json.Unmarshal([]byte(line), &en), line)
			require.WithinDuration(t, time.Now(), en.Time, time.Minute)
			all = append(all, en)
		}
		return all
	}
	p := newPlace(t)
	e := p.run("exit 7", "--log-format", "json")
	require.Equal(t, 7, e.status(t))
	logged := entries(e.err.String())
	elected := slices.IndexFunc(logged, func(en entry) bool { return en.Msg == "elected" })
	require.GreaterOrEqual(t, elected, 0)
	require.Equal(t, []string{"INFO", "job"}, []string{logged[elected].Level, logged[elected].Election})
	require.Equal(t, 7, logged[elected+1].Status)

	status, _, stderr := finish(t, "run", "--log-format", "json", "--store", "redis://127.0.0.1:1", "--wait", "2s", "job", "--", "true")
	require.Equal(t, 125, status)
	logged = entries(stderr)
	waiting := slices.IndexFunc(logged, func(en entry) bool { return en.Msg == "waiting for the store" })
	require.GreaterOrEqual(t, waiting, 0)
	require.Contains(t, logged[waiting].Error, "connection refused")
	last := logged[len(logged)-1]
	require.Equal(t, "ERROR", last.Level)
	require.Contains(t, last.Msg, "--wait 2s is over")

	e = start(t, "run", "--log-format", "json", "--store", "mem:", "job", "--", "true")
	require.Zero(t, e.status(t))
	require.Equal(t, "mem:", entries(e.err.String())[0].Store)
}
