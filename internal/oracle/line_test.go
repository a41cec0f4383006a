package oracle_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
)

// line is a history of a line in which every promise is kept: an old client has
// the safe until 9000, a would have it then and is gone, b leads from 10005 to
// 10100, c from 10112 to 10200, and another old client, who came last, is last.
func line() history.History {
	return history.History{
		About: history.About{TTL: 3 * time.Second, Margin: 300 * ms, Life: 3300 * ms, Slack: time.Second, Requests: 20, Turn: 3 * time.Second},
		Events: []history.Event{
			at(8000, "", history.Placed, token(4), value("an old client's")),
			at(8000, "", history.Holds, token(4), value("an old client's")),
			at(8001, "a", history.Ready), at(8001, "b", history.Ready), at(8001, "c", history.Ready),
			at(8010, "a", history.Sent, call(10, "join")),
			at(8011, "a", history.Committed, call(10, "join"), token(5)),
			at(8012, "a", history.Answered, call(10, "join"), token(5), result(history.OK)),
			at(8020, "b", history.Sent, call(10, "join")),
			at(8021, "b", history.Committed, call(10, "join"), token(6)),
			at(8022, "b", history.Answered, call(10, "join"), token(6), result(history.OK)),
			at(8030, "c", history.Sent, call(10, "join")),
			at(8031, "c", history.Committed, call(10, "join"), token(7)),
			at(8032, "c", history.Answered, call(10, "join"), result(history.Unknown)),
			at(8035, "c", history.Sent, call(11, "join")),
			at(8037, "c", history.Answered, call(11, "join"), token(7), result(history.OK)),
			at(8050, "", history.Placed, token(8), value("another's")),
			at(8060, "b", history.Waits, count(3)),
			at(8920, "b", history.Sent, call(11, "stay"), token(6)),
			at(8921, "b", history.Committed, call(11, "stay"), token(6)),
			at(8922, "b", history.Answered, call(11, "stay"), token(6), result(history.OK)),
			at(9000, "", history.Found, token(4), value("an old client's")),
			at(9000, "a", history.Holds, token(5)),
			at(10000, "b", history.Holds, token(6)),
			at(10005, "b", history.Elected, token(6), until(11620)),
			at(10100, "b", history.Ended, token(6)),
			at(10110, "c", history.Holds, token(7)),
			at(10112, "c", history.Elected, token(7), until(10730)),
			at(10200, "c", history.Ended, token(7)),
			at(10210, "", history.Holds, token(8), value("another's")),
			at(10220, "", history.Found, token(8), value("another's")),
		},
	}
}

// inLine replaces an event of a line.
func inLine(t int, kind history.Kind, others ...history.Event) history.History {
	return replaced(line(), t, kind, others...)
}

func TestALineWithoutFaultKeepsEveryPromise(t *testing.T) {
	found := oracle.Judge(line())
	require.Empty(t, found.Broken())
	for _, promise := range []string{"deadline from the send", "extension only on proof", "tokens grow", "foreign records unharmed",
		"everybody in turn", "a turn is taken or passed on", "who waits is in line"} {
		f, _ := found.Of(promise)
		require.Equal(t, oracle.Kept, f.Verdict, promise)
	}
}

func TestARuleFindsWhatIsBrokenInALine(t *testing.T) {
	for _, c := range []struct {
		name    string
		history history.History
		broken  string
		detail  string
	}{
		{"an old client's place is taken away",
			inLine(10220, history.Found, at(10220, "", history.Found, token(8))),
			"foreign records unharmed", `"another's" was put into the safe by somebody else, and "" is there now`},
		{"trust in a place is counted from the answer",
			inLine(10005, history.Elected, at(10005, "b", history.Elected, token(6), until(11622))),
			"deadline from the send", "b (token 6) trusted its lease for 1.62 s from when it said so: no request that was granted allows that"},
		{"trust in a place is counted from when its turn came",
			inLine(10005, history.Elected, at(10005, "b", history.Elected, token(6), until(12700))),
			"deadline from the send", "b (token 6) trusted its lease for 2.69 s from when it said so: no request that was granted allows that"},
		{"trust in a place that was found is counted from when it was found",
			inLine(10112, history.Elected, at(10112, "c", history.Elected, token(7), until(10735))),
			"deadline from the send", "c (token 7) trusted its lease for 0.62 s from when it said so: no request that was granted allows that"},
		{"a join is answered that the store never carried out",
			inLine(8031, history.Committed),
			"extension only on proof", "c (token 7) trusted its lease until 10.73 s on the word of request 10 (join), which the store never carried out"},
		{"who joins comes before others",
			inLine(8021, history.Committed, at(8021, "b", history.Committed, call(10, "join"), token(9))),
			"everybody in turn", "token 7 was given out after token 9"},
		{"who came later has the safe first",
			inLine(9000, history.Holds, at(9000, "c", history.Holds, token(7)), at(9001, "a", history.Holds, token(5))),
			"everybody in turn", "token 5 had the safe after token 7"},
		{"an old client is overtaken",
			inLine(8050, history.Placed, at(8005, "", history.Placed, token(5), value("another's"))),
			"everybody in turn", "token 5 was given out after token 5"},
		{"an old client in line is overtaken",
			inLine(9000, history.Found, at(9002, "", history.Found, token(4), value("an old client's"))),
			"everybody in turn", `token 5 had the safe while "an old client's" waited, who came first (token 4)`},
		{"who has a place leads before its turn",
			inLine(10005, history.Elected, at(9990, "b", history.Elected, token(6), until(11620))),
			"everybody in turn", "b led under token 6, which had not had the safe"},
		{"who does not lead keeps others waiting",
			inLine(9000, history.Holds, at(9000, "", history.Holds), at(3999, "a", history.Holds, token(5))),
			"a turn is taken or passed on", "a had the safe under token 5 for 4.00 s and never led; promised to make room within 4.00 s"},
		{"the last to have the safe neither leads nor makes room",
			inLine(10210, history.Holds, at(10205, "", history.Holds), at(10210, "b", history.Holds, token(8)), at(14211, "b", history.Left)),
			"a turn is taken or passed on", "b had the safe under token 8 for 4.00 s and never led; promised to make room within 4.00 s"},
		{"a candidate waits for a vacancy while others are in line",
			inLine(8060, history.Waits, at(8060, "b", history.Waits)),
			"who waits is in line", "b waited outside the line at 8.06 s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, ok := oracle.Judge(c.history).Of(c.broken)
			require.True(t, ok)
			require.Equal(t, oracle.Broken, f.Verdict)
			require.Equal(t, c.detail, f.Detail)
		})
	}
}
