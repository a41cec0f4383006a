package chronicle

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/machine"
	"github.com/electkv/election/kv"
)

// term is one of a past: it began and ended so many seconds ago.
func term(id string, token uint64, began, ended int, why byte, handedOver bool) machine.PastTerm {
	ago := func(s int) int64 { return time.Now().Add(-time.Duration(s) * time.Second).UnixMilli() }
	return machine.PastTerm{ID: id, Token: token, Began: ago(began), Ended: ago(ended), Why: why, HandedOver: handedOver}
}

// after returns a leader's record that tells of a past, and since when its leader has led.
func after(rec kv.Record, since int, past ...machine.PastTerm) kv.Record {
	n := machine.Note{Past: machine.Past(past).Text(), Since: time.Now().Add(-time.Duration(since) * time.Second).UnixMilli()}
	rec.Note = n.Text()
	return rec
}

// drawn says in a line what is known of an election: from when to when each spell was, in
// seconds before now, and how it ended.
func (s *script) drawn() string {
	text := ""
	for i, sp := range s.Spells {
		who := sp.Owner.ID
		if who == "" {
			who = string(sp.State)
		}
		if sp.Told {
			who = "~" + who
		}
		text += fmt.Sprintf("%s %v", who, s.at-sp.From)
		if sp.To != 0 {
			text += fmt.Sprintf("-%v", s.at-sp.To)
		}
		if how := s.How(i); how != "" {
			text += " " + how
		}
		text += "; "
	}
	return text
}

func TestTheFirstLeaderTellsWhoLedBefore(t *testing.T) {
	const told = "~a 1m0s-40s handed over to b, its heir, without a gap: it was told to stop; " +
		"~b 40s-30s given up or lost: it did not hand over; ~vacant 30s-25s; "
	synctest.Test(t, func(t *testing.T) {
		a, b := term("a", 1, 60, 40, 's', true), term("b", 2, 40, 30, machine.Gone, false)
		c := term("c", 5, 25, 10, 'f', true)
		for want, s := range map[string]*script{
			told + "~c 25s-10s handed over to d, its heir, without a gap: its work had ended; ~d 10s; ": new(script).leads(after(record("d", 1, 6), 10, a, b, c)),
			told + "~c 25s; ": new(script).leads(after(record("c", 1, 5), 25, a, b)),
			// The clock of the one that led last is ahead.
			"~a 1s-0s ended: it resigned; ~b 0s; ": new(script).leads(after(record("b", 1, 2), -7, term("a", 1, 1, -9, 'r', false))),
			// It has been vacant for longer than it was seen to be.
			"~a 1m0s-40s ended: its lease was not refreshed in time; ~vacant 40s-0s; b 0s; ": new(script).vacant().leads(after(record("b", 1, 2), 0, term("a", 1, 60, 40, 'e', false))),
			// Another program's lock does not tell when it was taken.
			"~a 1m0s-40s ended: a health check had failed; unknown 40s-1s; foreign 1s-0s; b 0s; ": new(script).leads(kv.Record{Foreign: true}).leads(after(record("b", 1, 2), 0, term("a", 1, 60, 40, 'u', false))),
			"b 0s; ":               new(script).leads(record("b", 1, 2)),
			"foreign 0s; ":         new(script).leads(kv.Record{Foreign: true, Note: after(record("b", 1, 2), 5, a).Note}),
			"~b 5s; ":              new(script).leads(after(record("b", 1, 2), 5)),
			"vacant 1s-0s; b 0s; ": new(script).vacant().leads(after(record("b", 1, 2), 3)),
		} {
			require.Equal(t, want, s.drawn())
			for i := range s.Spells[1:] {
				require.Equal(t, s.Spells[i].To, s.Spells[i+1].From, "no holes: %s", want)
			}
		}
	})
}

func TestLeadersTellWhyTheTermsThatWereSeenHaveEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(script).leads(record("a", 1, 1)).vacant().leads(after(record("b", 1, 2), 0, term("a", 1, 2, 1, 'e', false)))
		require.Equal(t, "a 2s-1s ended: its lease was not refreshed in time; vacant 1s-0s; b 0s; ", s.drawn())
		s.heir(record("c", 1, 7)).leads(after(record("c", 2, 4), 0, term("b", 2, 2, 0, 't', false)))
		require.Equal(t, "lost: its record was removed or overwritten", s.How(2))

		// The watch of the heir's safe was late.
		s.leads(after(record("d", 1, 5), 0, term("c", 4, 1, 0, 'a', true)))
		require.Equal(t, "handed over to d, its heir, without a gap: it was asked to resign or to hand over", s.How(3))
		s.vacant().leads(after(record("e", 1, 9), 0, term("b", 2, 4, 3, 't', false), term("c", 4, 3, 2, 'a', true), term("d", 5, 2, 1, 'u', false)))
		require.Equal(t, "ended: its lease was not refreshed in time", s.How(0))
		require.Equal(t, "lost: its record was removed or overwritten", s.How(2))
		require.Equal(t, "lost: a health check had failed", s.How(4))
		require.Equal(t, 4, s.Terms(1), "b, c, d and e: the past is told once")
	})
}

func TestTermsBeforeAChronicleCountAsFlapping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(script).leads(after(record("c", 1, 3), 1, term("a", 1, 60, 40, 's', true), term("b", 2, 40, 1, 's', true)))
		require.Equal(t, 3, s.Terms(s.at-time.Minute))
		require.Equal(t, 2, s.Terms(s.at-59*time.Second))
	})
}
