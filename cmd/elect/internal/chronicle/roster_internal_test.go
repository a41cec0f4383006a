package chronicle

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/kv"
)

// words are what the candidates that are kept are.
func (s *script) words() string {
	text := ""
	for _, c := range s.Candidates {
		text += c.ID + " " + s.Standing(c) + "; "
	}
	return text
}

func member(id, key string, number uint64) election.Member {
	return election.Member{ID: id, Role: election.RoleCandidate, Number: number, Safe: kv.MemberName("job", key)}
}

func signed(id, tag string, token uint64) kv.Record {
	return kv.Record{Signature: id + "/" + tag + "-1.1", Token: token, TTL: time.Second}
}

func TestWhatACandidateIsFollowsTheWatchesAndNotTheRoster(t *testing.T) {
	observer := member("eve", "E-1", 4)
	observer.Role = election.RoleObserver
	s := new(script)
	require.True(t, s.setCandidates(candidatesOf([]election.Member{
		member("anna", "A-1", 1), member("ben", "B-1", 2), member("anna", "C-1", 3), observer,
		{Value: "theirs", Safe: "job:roster:x", Foreign: true},
	}), ""))
	require.Equal(t, "anna waits; ben waits; anna waits; eve observes;  foreign; ", s.words())
	s.leads(signed("anna", "C", 1)).heir(signed("ben", "B", 7))
	require.Equal(t, "anna waits; ben heir; anna leads; eve observes;  foreign; ", s.words(), "of two with one ID the one that leads is told")
	s.leads(signed("ben", "B", 2)).noHeir()
	require.Equal(t, "anna waits; ben leads; anna waits; eve observes;  foreign; ", s.words())
	s.hidden()
	require.Equal(t, "anna waits; ben waits; anna waits; eve observes;  foreign; ", s.words())
}

func TestALeaderWithoutARecordInTheRosterIsKnownByItsID(t *testing.T) {
	s := new(script).leads(record("anna", 1, 1))
	s.setCandidates(candidatesOf([]election.Member{{ID: "anna", Role: election.RoleLeader}, member("ben", "B-1", 2)}), "")
	require.Equal(t, "anna leads; ben waits; ", s.words())
}

func TestARosterWithoutRecordsHasNoCandidates(t *testing.T) {
	require.Empty(t, candidatesOf([]election.Member{{ID: "anna", Role: election.RoleLeader}, {ID: "ben", Role: election.RoleHeir}}))
}

func TestOfACrowdTheLeaderTheHeirAndTheFirstAreKept(t *testing.T) {
	all := []election.Member{}
	for i := range 10_000 {
		m := member(fmt.Sprint("c", i), fmt.Sprintf("T%d-1", i), uint64(i+1))
		m.Value = fmt.Sprintf("%01000d", i)
		all = append(all, m)
	}
	s := new(script).leads(signed("c9000", "T9000", 1)).heir(signed("c7000", "T7000", 1))
	s.setCandidates(candidatesOf(all), "")
	require.Equal(t, 10_000, s.CandidateCount)
	require.Len(t, s.Candidates, mostCandidates)
	require.Equal(t, "c0", s.Candidates[0].ID)
	require.Equal(t, "c17", s.Candidates[17].ID)
	require.Equal(t, "c7000", s.Candidates[18].ID)
	require.Equal(t, "c9000", s.Candidates[19].ID)
	require.LessOrEqual(t, len(s.Candidates[0].Value), mostValue+len("…"))

	same := make([]Candidate, 1000)
	for i := range same {
		same[i].ID = "c9000"
	}
	s.setCandidates(same, "")
	require.Len(t, s.Candidates, mostCandidates, "though all may lead")
}

func TestTheSameCandidatesAreNoNews(t *testing.T) {
	e := new(Election)
	all := []Candidate{{ID: "anna", Since: time.UnixMilli(5)}, {ID: "ben"}}
	require.False(t, e.setCandidates(nil, ""))
	require.True(t, e.setCandidates(all, ""))
	require.False(t, e.setCandidates(all, ""))
	all[1].Value = "news"
	require.True(t, e.setCandidates(all, ""))
	require.True(t, e.setCandidates(nil, "trouble"))
	require.Equal(t, "trouble", e.Unlisted)
	require.False(t, e.setCandidates(nil, "trouble"))
	require.True(t, e.setCandidates(nil, ""))
}

func TestRostersAreReadInTurnAndTheOneThatIsLookedAtFirst(t *testing.T) {
	c := &Chronicle{elections: map[string]*followed{}}
	for i, name := range []string{"a", "b", "c"} {
		c.elections[name] = &followed{Election: Election{Name: name}, roster: reading{due: time.Duration(i)}}
	}
	require.Nil(t, c.nextRoster(-1))
	require.Equal(t, "a", c.nextRoster(1).Name)
	require.Equal(t, "b", c.nextRoster(1).Name, "one that is being read is not read again")
	require.Nil(t, c.nextRoster(1))
	for range 10 { // the order of a map is drawn
		for _, f := range c.elections {
			f.roster.goes = false
		}
		c.Look("c")
		require.Equal(t, "c", c.nextRoster(5).Name)
		require.Equal(t, "a", c.nextRoster(5).Name)
	}
	c.elections["b"].roster.rest(5, time.Millisecond, nil)
	require.Nil(t, c.nextRoster(5), "it was read just now")
	require.Equal(t, "b", c.nextRoster(5+rosterPause).Name)
}

func TestARosterThatIsSlowOrInTroubleIsReadMoreRarely(t *testing.T) {
	r := new(reading)
	r.rest(0, time.Second, nil)
	require.Equal(t, rosterRest*time.Second, r.due)
	pauses := []time.Duration{}
	for range 7 {
		r.rest(0, time.Millisecond, errors.New("trouble"))
		pauses = append(pauses, r.due/time.Second)
	}
	require.Equal(t, []time.Duration{2, 4, 8, 16, 32, 60, 60}, pauses)
	r.rest(0, time.Millisecond, nil)
	require.Equal(t, rosterPause, r.due)
	r.rest(0, time.Millisecond, kv.ErrInvalid)
	require.EqualValues(t, math.MaxInt64, r.due)
}
