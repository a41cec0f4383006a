package chronicle

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/machine"
	"github.com/electkv/election/kv"
)

// record is one of a campaign of a candidate: its serial number tells records apart.
func record(id string, serial int, token uint64) kv.Record {
	return kv.Record{Signature: fmt.Sprintf("%s/NONCE.%d", id, serial), Token: token, TTL: time.Second}
}

// A script tells an election what its safes hold, a second between two steps.
type script struct {
	Election
	at time.Duration
}

func (s *script) now() time.Duration {
	s.at += time.Second
	return s.at
}

func (s *script) leads(rec kv.Record) *script {
	s.see(rec, false, s.now())
	return s
}

func (s *script) vacant() *script {
	s.see(kv.Record{}, true, s.now())
	return s
}

func (s *script) heir(rec kv.Record) *script {
	s.seeHeir(rec, false, s.now())
	return s
}

func (s *script) noHeir() *script {
	s.seeHeir(kv.Record{}, true, s.now())
	return s
}

func (s *script) hidden() *script {
	s.hide(s.now())
	return s
}

// told says in a line what was told of an election.
func (s *script) told() string {
	text := ""
	for _, sp := range s.Spells {
		who := sp.Owner.ID
		if who == "" {
			who = string(sp.State)
		}
		if sp.End != "" {
			who += " " + string(sp.End)
		}
		text += who + "; "
	}
	return text
}

func TestATermEndsAsWhatComesAfterItTells(t *testing.T) {
	call := record("a", 9, 9)
	call.Note = machine.Note{Calls: "c"}.Text()
	for want, s := range map[string]*script{
		// Its heir's signature is in the leader's safe.
		"a handed over; b; ": new(script).leads(record("a", 1, 1)).heir(record("b", 1, 7)).leads(record("b", 1, 2)),
		// The heir has claimed it under another signature, and the vacancy went unseen.
		"a lost; b; ":         new(script).leads(record("a", 1, 1)).heir(record("b", 1, 7)).leads(record("b", 2, 2)),
		"a lost; vacant; b; ": new(script).leads(record("a", 1, 1)).heir(record("b", 1, 7)).vacant().leads(record("b", 2, 2)),
		"a lost; vacant; ":    new(script).leads(record("a", 1, 1)).heir(record("b", 1, 7)).noHeir().vacant(),
		"a over; vacant; b; ": new(script).leads(record("a", 1, 1)).vacant().leads(record("b", 2, 2)),
		"a over; b; ":         new(script).leads(record("a", 1, 1)).leads(record("b", 2, 2)),
		"a over; a; ":         new(script).leads(record("a", 1, 1)).leads(record("a", 2, 2)),
		// Its own record in the heir's safe, from before it led, is no heir.
		"a over; vacant; c; ": new(script).heir(record("a", 1, 1)).leads(record("a", 2, 1)).vacant().leads(record("c", 1, 2)),
		// A leader calls for an heir there.
		"a over; vacant; d; ": new(script).leads(record("a", 1, 1)).heir(call).vacant().leads(record("d", 1, 2)),
		// It is not known what happened meanwhile.
		"a unseen; unknown; b; ": new(script).leads(record("a", 1, 1)).heir(record("b", 1, 7)).hidden().leads(record("b", 1, 2)),
		"a; unknown; a; ":        new(script).leads(record("a", 1, 1)).hidden().hidden().leads(record("a", 1, 1)),
		"vacant; unknown; ":      new(script).vacant().hidden(),
		// Another program's lock.
		"a over; foreign; vacant; ": new(script).leads(record("a", 1, 1)).leads(kv.Record{Foreign: true, Value: "x"}).leads(kv.Record{Foreign: true, Value: "y"}).vacant(),
	} {
		require.Equal(t, want, s.told())
	}
}

func TestAnHeirThatHasGoneLongAgoIsNotMissed(t *testing.T) {
	s := new(script).leads(record("a", 1, 1)).heir(record("b", 1, 7)).noHeir()
	s.at += memory
	require.Equal(t, "a over; vacant; ", s.vacant().told())
}

func TestSpellsFollowEachOtherWithoutHoles(t *testing.T) {
	s := new(script).vacant().leads(record("a", 1, 1)).hidden().leads(record("a", 1, 1)).vacant().leads(record("b", 1, 2))
	require.Len(t, s.Spells, 6)
	for i, sp := range s.Spells[1:] {
		require.Equal(t, s.Spells[i].To, sp.From)
		require.Less(t, s.Spells[i].From, sp.From)
	}
	require.Zero(t, s.Now().To)
	require.True(t, s.Spells[0].Found, "it may have been so for long")
	require.True(t, s.Spells[3].Found)
	require.False(t, s.Spells[1].Found)
	require.Equal(t, 2, s.Terms(0), "the one that went on out of sight counts once")
	require.Equal(t, 1, s.Terms(s.Spells[5].From))
}

func TestWhatIsPublishedChangesNoTerm(t *testing.T) {
	s := new(script)
	rec := record("a", 1, 1)
	require.True(t, s.see(rec, false, 1))
	require.False(t, s.see(rec, false, 2), "no news")
	rec.Value, rec.Note = "here", machine.Note{Rank: 3, Heirs: []string{"b"}, Since: 5000}.Text()
	require.True(t, s.see(rec, false, 3))
	require.Len(t, s.Spells, 1)
	now := s.Now()
	require.Equal(t, time.Duration(1), now.From)
	require.Equal(t, Owner{
		ID: "a", Value: "here", Token: 1, Rank: 3, Heirs: []string{"b"}, TTL: time.Second,
		Since: time.UnixMilli(5000), signature: "a/NONCE.1",
	}, now.Owner)
}

func TestTheHeirIsTheOneThatWaits(t *testing.T) {
	s := new(script).leads(record("a", 1, 1)).heir(record("b", 1, 7))
	h, ok := s.Heir()
	require.True(t, ok)
	require.Equal(t, "b", h.Owner.ID)
	s.leads(record("b", 1, 2))
	_, ok = s.Heir()
	require.False(t, ok, "for a moment its record is still there")
	s.heir(record("c", 1, 8))
	h, ok = s.Heir()
	require.True(t, ok)
	require.Equal(t, "c", h.Owner.ID)
	require.Len(t, s.Heirs, 2)
	require.Equal(t, s.Heirs[0].To, s.Heirs[1].From)
	_, ok = s.noHeir().Heir()
	require.False(t, ok)
}

func TestAnElectionKeepsItsNewestSpells(t *testing.T) {
	s := new(script)
	for i := range mostSpells {
		s.leads(record("a", i, uint64(i+1))).heir(record("b", i, uint64(i+1))).vacant().noHeir()
	}
	require.Len(t, s.Spells, mostSpells)
	require.Len(t, s.Heirs, mostHeirs)
	require.Equal(t, Vacant, s.Now().State)
	require.Equal(t, uint64(mostSpells), s.Spells[mostSpells-2].Owner.Token)
}

func TestTroubleWithTheLeadersSafeCountsFirst(t *testing.T) {
	e := new(Election)
	require.False(t, e.trouble(heirSafe, ""))
	require.True(t, e.trouble(heirSafe, "no heir"))
	require.Equal(t, "no heir", e.Trouble)
	require.True(t, e.trouble(leaderSafe, "no leader"))
	require.Equal(t, "no leader", e.Trouble)
	require.True(t, e.trouble(leaderSafe, ""))
	require.False(t, e.trouble(leaderSafe, ""))
	require.Equal(t, "no heir", e.Trouble)
}
