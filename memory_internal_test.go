package election

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/machine"
	"github.com/electkv/election/kv"
)

// led returns a leader's record.
func led(id string, token uint64, past string) kv.Record {
	return kv.Record{Signature: id + "/1", Token: token, Note: machine.Note{Since: 1000, Past: past}.Text()}
}

// words returns a memory's history, a word for each term.
func (m *memory) words() (all []string) {
	for _, t := range machine.PastOf(m.history()) {
		all = append(all, t.ID+":"+machine.ReasonOf(t.Why))
	}
	return all
}

func TestASlowWatchEndsNoTermInTheHistory(t *testing.T) {
	m := &memory{}
	m.saw(led("a", 1, ""))
	m.saw(led("b", 2, ""))
	m.saw(led("a", 1, ""))
	require.Equal(t, []string{"a:gone"}, m.words(), "what is over")
	m.saw(kv.Record{})
	m.saw(led("b", 2, "")) // the vacancy was older than that
	require.Equal(t, []string{"a:gone"}, m.words(), "b leads on")
}

func TestALeaderKnowsWhyItsTermEndedThoughAWatchWasSooner(t *testing.T) {
	m := &memory{}
	m.saw(led("a", 1, ""))
	m.saw(kv.Record{})
	m.ended(1, ReasonTaken)
	require.Equal(t, []string{"a:taken"}, m.words())
}

func TestTheHistoryHasALetterForEachReason(t *testing.T) {
	for _, r := range []Reason{
		ReasonExpired, ReasonTaken, ReasonUnhealthy, ReasonStopped, ReasonFinished, ReasonAsked, ReasonGaveWay, ReasonResigned, ReasonGone,
	} {
		require.Equal(t, string(r), machine.ReasonOf(machine.LetterOf(string(r))))
	}
	require.Equal(t, string(ReasonGone), machine.ReasonOf('z'))
}
