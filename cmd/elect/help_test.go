//go:build unix

package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/cmd/elect/internal/stores"
)

func TestTheHelpIsShortAndBeginsWithTheCommands(t *testing.T) {
	t.Parallel()
	status, stdout, _ := finish(t, "--help")
	require.Zero(t, status)
	require.LessOrEqual(t, strings.Count(stdout, "\n"), 45)
	require.Regexp(t, `(?s)^Elect chooses one leader.*\n\nCommands:\n.* run .*Examples:\n.*Flags:\n.*elect help stores.*\nExit status: [^\n]*\n$`, stdout)
	for _, args := range [][]string{{}, {"help"}} {
		status, same, _ := finish(t, args...)
		require.Zero(t, status)
		require.Equal(t, stdout, same)
	}
}

func TestTheHelpAboutStoresHasEachKindAndEachParameter(t *testing.T) {
	t.Parallel()
	status, stdout, _ := finish(t, "help", "stores")
	require.Zero(t, status)
	for _, beginning := range stores.Beginnings() {
		require.Contains(t, stdout, beginning)
		_, err := stores.Parse(beginning+"?nonsense=1", func(string) string { return "" })
		require.ErrorContains(t, err, "nonsense")
		_, params, _ := strings.Cut(err.Error(), ", parameters ")
		for param := range strings.FieldsSeq(params) {
			require.Regexp(t, `\b`+param+`\b`, stdout, beginning)
		}
	}
}

func TestTheHelpOfAnUnknownTopicIsAnError(t *testing.T) {
	t.Parallel()
	for topic, meant := range map[string]string{"storse": "; did you mean stores?", "statsu": "; did you mean status?", "zzz": ""} {
		status, stdout, stderr := finish(t, "help", topic)
		require.Equal(t, 125, status)
		require.Empty(t, stdout)
		require.Equal(t, `elect: unknown command "`+topic+`" for "elect"`+meant+"\n", stderr)
	}
}
