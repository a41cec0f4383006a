package coexist_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/test/interop/coexist"
)

const ms = time.Millisecond

// own returns a term of this library, by the name of its record.
func own(owner string, begin, end int) coexist.Term {
	return coexist.Term{Who: "new-" + owner, Owner: owner, Begin: time.Duration(begin) * ms, End: time.Duration(end) * ms}
}

// old returns one of an old lock, with its right.
func old(owner string, begin, end, right int) coexist.Term {
	return coexist.Term{Who: "old-" + owner, Old: true, Owner: owner, Begin: time.Duration(begin) * ms, End: time.Duration(end) * ms, Right: time.Duration(right) * ms}
}

// seen returns a sighting by looks that took 2 ms each.
func seen(owner string, isOld bool, first, last int) coexist.Sighting {
	return coexist.Sighting{
		Owner: owner, Old: isOld,
		FirstSent: time.Duration(first) * ms, FirstAnswered: time.Duration(first+2) * ms,
		LastSent: time.Duration(last) * ms, LastAnswered: time.Duration(last+2) * ms,
	}
}

func TestAStoryInWhichEachWaitsForTheOtherIsFine(t *testing.T) {
	v := coexist.Story{
		Terms: []coexist.Term{old("a", 100, 200, 400), own("b", 210, 300), own("c", 305, 400), old("d", 410, 500, 700)},
		Sightings: []coexist.Sighting{
			seen("a", true, 99, 198), seen("b", false, 207, 301), seen("c", false, 303, 401), seen("d", true, 405, 501),
		},
		Departures: []coexist.Departure{{Owner: "a", By: 205 * ms}, {Owner: "d", By: 520 * ms}},
	}.Judge()
	require.Equal(t, coexist.Verdict{Old: 2, New: 2}, v)
}

func TestTwoLeadersAreFound(t *testing.T) {
	v := coexist.Story{Terms: []coexist.Term{own("a", 100, 200), own("b", 199, 300)}}.Judge()
	require.Len(t, v.Broken, 1)
	require.Contains(t, v.Broken[0], `new-b ("b") led beside new-a ("a") for 1ms`)
}

func TestALeaderBesideAnOldLockInItsRightIsFound(t *testing.T) {
	for name, terms := range map[string][]coexist.Term{
		"who came later":   {old("a", 100, 500, 400), own("b", 390, 600)},
		"who came earlier": {own("b", 50, 110), old("a", 100, 500, 400)},
	} {
		v := coexist.Story{Terms: terms, Grain: 2 * ms}.Judge()
		require.Len(t, v.Broken, 1, name)
		require.Contains(t, v.Broken[0], "was in its right", name)
		require.Empty(t, v.Flaws, name)
	}
}

func TestABeliefBeyondTheRightIsAFlawOfTheOldLock(t *testing.T) {
	v := coexist.Story{Terms: []coexist.Term{old("a", 100, 900, 400), own("b", 399, 600), old("c", 610, 700, 800)}, Grain: 2 * ms}.Judge()
	require.Empty(t, v.Broken, "a grain of the store's time")
	require.Equal(t, []coexist.Flaw{{"old-a", "new-b", 201 * ms}, {"old-a", "old-c", 90 * ms}}, v.Flaws)
}

func TestTheRightOfAnOldLockEndsWhenAnotherDeletesItsRecord(t *testing.T) {
	s := coexist.Story{
		Terms:    []coexist.Term{old("a", 100, 390, 400), own("b", 210, 300)},
		Erasures: []coexist.Erasure{{Who: "old-1", Sent: 200 * ms, Answered: 201 * ms, Owner: "a"}},
	}
	v := s.Judge()
	require.Empty(t, v.Broken)
	require.Len(t, v.Flaws, 1)
	for name, e := range map[string]coexist.Erasure{
		"another's record was deleted": {Who: "old-1", Sent: 200 * ms, Answered: 201 * ms, Owner: "c"},
		"the delete came later":        {Who: "old-1", Sent: 220 * ms, Answered: 221 * ms, Owner: "a"},
	} {
		s.Erasures = []coexist.Erasure{e}
		require.Len(t, s.Judge().Broken, 1, name)
	}
	s.Erasures = []coexist.Erasure{{Who: "old-1", Sent: 200 * ms, Answered: 205 * ms, Unknown: true}}
	require.Empty(t, s.Judge().Broken, "it may have been")
	s.Sightings = []coexist.Sighting{seen("a", true, 100, 208)}
	require.Len(t, s.Judge().Broken, 1, "it was there still")
}

func TestALeaderWhileTheStoreShowsAnotherIsFound(t *testing.T) {
	for name, g := range map[string]coexist.Sighting{
		"between two looks of before and after": seen("a", true, 10, 500),
		"from before until a look":              seen("a", true, 10, 150),
		"by one look":                           seen("a", true, 150, 150),
		"of another of this library":            seen("a", false, 150, 150),
	} {
		v := coexist.Story{Terms: []coexist.Term{own("b", 100, 200)}, Sightings: []coexist.Sighting{g}}.Judge()
		require.Len(t, v.Broken, 1, name)
		require.Contains(t, v.Broken[0], `while the store showed "a"`, name)
	}
}

func TestALookThatIsNotSurelyWithinATermProvesNothing(t *testing.T) {
	for _, g := range []coexist.Sighting{
		seen("a", true, 10, 99),   // the last look was on its way when the term began
		seen("a", true, 199, 300), // the first one when it ended
		seen("a", true, 99, 99),
		seen("a", true, 199, 199),
		seen("b", false, 10, 300), // its own
	} {
		v := coexist.Story{Terms: []coexist.Term{own("b", 100, 200)}, Sightings: []coexist.Sighting{g}}.Judge()
		require.Empty(t, v.Broken)
	}
}

func TestARecordThatWasTakenFromAnOldLockIsFound(t *testing.T) {
	gone := []coexist.Departure{{Owner: "a", By: 300 * ms, Alive: true}}
	holder := old("a", 100, 400, 0)
	v := coexist.Story{Terms: []coexist.Term{holder}, Departures: gone}.Judge()
	require.Len(t, v.Broken, 1)
	require.Contains(t, v.Broken[0], "before its time")

	for name, s := range map[string]coexist.Story{
		"it was released":             {Terms: []coexist.Term{{Who: "old-a", Old: true, Owner: "a", Begin: 100 * ms, End: 250 * ms, Released: 260 * ms}}, Departures: gone},
		"its time was over":           {Terms: []coexist.Term{holder}, Departures: []coexist.Departure{{Owner: "a", By: 300 * ms}}},
		"nobody believed to have it":  {Departures: gone},
		"another had deleted it":      {Terms: []coexist.Term{holder}, Departures: gone, Erasures: []coexist.Erasure{{Who: "old-b", Sent: 290 * ms, Answered: 291 * ms, Owner: "a"}}},
		"another may have deleted it": {Terms: []coexist.Term{holder}, Departures: gone, Erasures: []coexist.Erasure{{Who: "old-b", Sent: 290 * ms, Answered: 999 * ms, Unknown: true}}},
	} {
		require.Empty(t, s.Judge().Broken, name)
	}

	late := holder
	late.End, late.Released = 301*ms, 401*ms
	v = coexist.Story{Terms: []coexist.Term{late}, Departures: gone}.Judge()
	require.Len(t, v.Broken, 1, "it heard of it, and had not released it before")
}

func TestALeaderWithoutARecordIsFound(t *testing.T) {
	s := coexist.Story{Terms: []coexist.Term{own("a", 100, 200)}, Departures: []coexist.Departure{{Owner: "a", By: 180 * ms}}, Notice: 50 * ms}
	v := s.Judge()
	require.Len(t, v.Broken, 1)
	require.Contains(t, v.Broken[0], "led on for 20ms after 180ms, when its record was gone")
	for _, by := range []time.Duration{90 * ms, 200 * ms, 300 * ms} {
		s.Departures[0].By = by
		require.Empty(t, s.Judge().Broken, "before it began, or after it ended")
	}
	s.Departures[0].By = 180 * ms
	s.Erasures = []coexist.Erasure{{Who: "old-1", Sent: 170 * ms, Answered: 171 * ms, Owner: "a"}}
	require.Empty(t, s.Judge().Broken, "it was deleted")
}

func TestAnOverlapAfterABareDeleteIsTheDeletersDoing(t *testing.T) {
	s := coexist.Story{
		Terms:     []coexist.Term{own("a", 100, 300), own("b", 210, 400)},
		Sightings: []coexist.Sighting{seen("a", false, 95, 195), seen("b", false, 205, 399)},
		Erasures:  []coexist.Erasure{{Who: "old-1", Sent: 200 * ms, Answered: 202 * ms, Owner: "a"}},
		Notice:    150 * ms,
	}
	v := s.Judge()
	require.Empty(t, v.Broken)
	require.Len(t, v.Excused, 2, "the beliefs overlap, and the store showed b")
	require.Equal(t, 1, v.Erased)
	require.Equal(t, 98*ms, v.Slowest)

	s.Terms[0] = own("a", 203, 300) // whose claim was answered late
	require.Empty(t, s.Judge().Broken)
	s.Terms[0] = own("a", 100, 300)

	s.Notice = 90 * ms
	v = s.Judge()
	require.NotEmpty(t, v.Broken)
	require.Contains(t, v.Broken[0]+v.Broken[1], "led on for 98ms")

	s.Notice = 150 * ms
	s.Erasures[0].Owner = "x"
	require.Len(t, s.Judge().Broken, 2, "it deleted another's record")
	s.Erasures[0].Owner = ""
	require.Len(t, s.Judge().Broken, 2, "it deleted nothing")
	s.Erasures[0] = coexist.Erasure{Who: "old-1", Sent: 250 * ms, Answered: 251 * ms, Owner: "a"}
	require.Len(t, s.Judge().Broken, 2, "it came after the overlap had begun")
}

func TestADeleteWithoutAnAnswerExcusesOnlyWhatIsGone(t *testing.T) {
	s := coexist.Story{
		Terms:     []coexist.Term{own("a", 100, 300), own("b", 210, 400)},
		Sightings: []coexist.Sighting{seen("a", false, 95, 195)},
		Erasures:  []coexist.Erasure{{Who: "old-1", Sent: 200 * ms, Answered: 260 * ms, Unknown: true}},
		Notice:    150 * ms,
	}
	require.Empty(t, s.Judge().Broken)
	later := s
	later.Terms = []coexist.Term{own("a", 261, 300), own("b", 210, 500)}
	require.NotEmpty(t, later.Judge().Broken, "it began later")
	s.Sightings[0] = seen("a", false, 95, 290)
	require.NotEmpty(t, s.Judge().Broken, "it was still there")
}

func TestTokensThatGoBackAreFound(t *testing.T) {
	a, b, c := own("a", 100, 200), own("b", 210, 300), own("c", 310, 400)
	a.Token, c.Token = 7, 8
	require.Empty(t, coexist.Order([]coexist.Term{c, a, b}), "b has none")
	b.Token = 9
	require.Equal(t, []string{`new-c ("c", token 8) began after new-b ("b", token 9)`}, coexist.Order([]coexist.Term{a, b, c}))
	b.Token = 7
	require.Len(t, coexist.Order([]coexist.Term{a, b, c}), 1, "the same one is none")
}

func TestTheLongestTimeOutsideIsFound(t *testing.T) {
	terms := []coexist.Term{own("a", 100, 200), old("x", 210, 240, 0), own("b", 250, 300), own("c", 290, 400)}
	for _, at := range []struct {
		old             bool
		to              int
		longest, begins time.Duration
	}{
		{false, 450, 50 * ms, 50 * ms},
		{false, 600, 200 * ms, 400 * ms},
		{true, 300, 160 * ms, 50 * ms},
		{true, 999, 759 * ms, 240 * ms},
	} {
		longest, since := coexist.Shut(terms, at.old, 50*ms, time.Duration(at.to)*ms)
		require.Equal(t, at.longest, longest)
		require.Equal(t, at.begins, since)
	}
	row := []coexist.Sighting{seen("a", true, 1, 2), seen("b", false, 3, 4), seen("c", true, 5, 6), seen("d", true, 7, 8)}
	require.Equal(t, 2, coexist.Row(row, true))
	require.Equal(t, 1, coexist.Row(row, false))
}

func TestTermsAreReadOutOfAHistory(t *testing.T) {
	at := func(at int, who string, kind history.Kind, value string, until int) history.Event {
		return history.Event{At: time.Duration(at) * ms, Who: who, Kind: kind, Value: value, Until: time.Duration(until) * ms}
	}
	h := history.History{Events: []history.Event{
		at(1, "old-1", history.Ready, "", 0), at(1, "new-1", history.Ready, "", 0),
		at(100, "old-1", history.Elected, "a", 300), at(150, "old-1", history.Extended, "", 350),
		at(200, "old-1", history.Ended, "", 210),
		at(220, "new-1", history.Elected, "b", 400), at(300, "new-1", history.Extended, "", 480),
		at(310, "new-1", history.Killed, "", 0),
		at(311, "new-1", history.Elected, "late", 900), // was on its way
		at(320, "new-1", history.Ready, "", 0),
		at(500, "new-1", history.Elected, "c", 600),
		at(700, "old-1", history.Elected, "d", 900),
		at(750, "new-1", history.Elected, "e", 800), at(780, "new-1", history.Ended, "", 0),
	}}
	terms := coexist.Terms(h, 999*ms)
	ends := map[string]time.Duration{}
	for _, term := range terms {
		ends[term.Owner] = term.End
	}
	require.Equal(t, map[string]time.Duration{
		"a": 200 * ms, "b": 310 * ms, "late": 311 * ms, "c": 600 * ms, "d": 999 * ms, "e": 780 * ms,
	}, ends)
	require.Equal(t, coexist.Term{Who: "old-1", Old: true, Owner: "a", Begin: 100 * ms, End: 200 * ms, Right: 350 * ms, Released: 210 * ms}, terms[0])
	require.False(t, terms[1].Old)
}
