package history_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/history"
)

// joined has a process be in a group of some members, the first of which leads.
func joined(ms int, who, number string, members ...string) history.Event {
	e := at(ms, who, history.Joined, 0, 0)
	if number != "" {
		e.Group = history.Group{Number: number, Leader: members[0], Members: slices.Sorted(slices.Values(members))}
	}
	return e
}

// merged: a leads a and b from 2000 on, and is killed at 5000; b goes on alone, and leads both when a
// is back.
func merged() history.History {
	fault := at(1900, "", history.Healed, 0, 0)
	fault.Text = "the network is whole"
	return history.History{Events: []history.Event{
		at(0, "a", history.Ready, 0, 0), at(0, "b", history.Ready, 0, 0),
		joined(500, "a", "a/1", "a"), joined(600, "b", "b/1", "b"),
		joined(1900, "b", ""), joined(2000, "a", "a/2", "a", "b"), joined(2010, "b", "a/2", "a", "b"),
		fault, // told late
		at(5000, "a", history.Killed, 0, 0),
		joined(6000, "b", "b/2", "b"),
		at(7000, "a", history.Ready, 0, 0),
		joined(8000, "a", "b/3", "b", "a"), joined(8000, "b", "b/3", "b", "a"),
		at(9000, "", history.Met, 0, 0),
	}}
}

func TestTheTimelineOfGroupsShowsWhoLedWhom(t *testing.T) {
	require.Equal(t, ""+
		"a      ···1███████████3██████████████████████K              ········5bbbbbbbb\n"+
		"b      ····2█████████·3aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa4██████████████5████████\n"+
		"fault                a\n"+
		"       ┬──────────────┬──────────────┬───────────────┬──────────────┬────────\n"+
		"       0s             2s             4s              6s             8s\n"+
		"       a  1.90 s  the network is whole\n",
		history.TimelineOfGroups(merged(), 77))
	require.Equal(t, "nothing happened\n", history.TimelineOfGroups(history.History{}, 77))
}

func TestGroupsAreWrittenAndRead(t *testing.T) {
	var file bytes.Buffer
	require.NoError(t, history.Write(&file, merged()))
	require.NotContains(t, file.String(), `"group":{}`)
	read, err := history.Read(&file)
	require.NoError(t, err)
	written := merged()
	written.Sort()
	require.Equal(t, written, read)
}
