package oracle_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
)

// said is an answer to the question whether a candidate leads, which took 5 ms.
func said(t int, who, answer string, tok uint64) history.Event {
	return at(t, who, history.Said, within(5), token(tok), func(e *history.Event) { e.Result = answer })
}

// scraped is an answered scrape, which shows a token, or 0, and how many terms have ended, by reason.
func scraped(t int, who string, tok uint64, ends map[string]int) history.Event {
	return at(t, who, history.Scraped, within(5), token(tok), count(int(min(tok, 1))), func(e *history.Event) {
		e.Result, e.Ends = history.OK, ends
	})
}

// down is a question or scrape without an answer.
func down(t int, who string, kind history.Kind) history.Event {
	return at(t, who, kind, within(200), func(e *history.Event) { e.Result = history.Unknown })
}

// asked is good, with questions: a is killed, b is asleep beyond its term until 6000, c resigns at 7100.
func asked(more ...history.Event) history.History {
	h := good()
	h.Scrape, h.Slack = 250*ms, 0
	expired, resigned := map[string]int{"expired": 1}, map[string]int{"resigned": 1}
	for i, e := range h.Events {
		if e.Kind == history.Ended {
			h.Events[i].Value = map[uint64]string{2: "expired", 3: "resigned"}[e.Token]
		}
		if e.Kind == history.Left {
			h.Events[i].At = 7900 * ms
		}
	}
	h.Events = append(h.Events,
		said(8, "a", history.Yes, 1), // before it says so
		said(600, "a", history.Yes, 1), down(1001, "a", history.Said), down(3600, "a", history.Said),
		said(600, "c", history.No, 0), said(1900, "b", history.Yes, 2), said(1998, "b", history.Yes, 2), down(3000, "b", history.Said),
		said(5999, "b", history.No, 0), said(7000, "c", history.Yes, 3), said(7104, "c", history.No, 0),

		scraped(500, "a", 1, nil), scraped(500, "b", 0, nil), down(1100, "a", history.Scraped), down(3590, "a", history.Scraped),
		scraped(1750, "b", 2, nil), down(2000, "b", history.Scraped), down(5990, "b", history.Scraped),
		scraped(6250, "b", 0, nil), scraped(6501, "b", 0, expired),
		scraped(7050, "c", 3, nil), scraped(7300, "c", 0, nil), scraped(7550, "c", 0, resigned),
	)
	h.Events = append(h.Events, more...)
	return h
}

func TestAnswersThatAreTrueKeepThePromises(t *testing.T) {
	for name, more := range map[string][]history.Event{
		"nothing more": nil,
		"the answer comes late, and was true when it was asked for": {said(4579, "b", history.Yes, 2)},
		"it leads, and its work has not begun":                      {said(4779, "c", history.Yes, 3), scraped(4779, "c", 3, nil)},
		"it leads by the store's word under a token that it never worked under": {
			at(8000, "a", history.Sent, call(9, "create")), at(8001, "a", history.Answered, call(9, "create"), token(9), result(history.OK)),
			said(8001, "a", history.Yes, 9), said(10699, "a", history.Yes, 9),
		},
		"an answer comes between the decision to kill and the kill": {said(1001, "a", history.Yes, 1), scraped(1001, "a", 1, nil)},
		"it is told to stop, and leads until it gives the safe up": {
			at(8000, "a", history.Elected, token(9), until(9000)), at(8100, "a", history.Ended, token(9), value("stopped")),
			said(8101, "a", history.Yes, 9), scraped(8101, "a", 9, nil), at(8110, "a", history.Sent, call(9, "delete"), token(9)),
		},
		"it has led twice, and leads again": {
			at(8000, "c", history.Elected, token(9), until(9000)), at(8100, "c", history.Ended, token(9), value("expired")),
			scraped(8349, "c", 0, map[string]int{"resigned": 1}), scraped(8500, "c", 0, map[string]int{"resigned": 1, "expired": 1}),
		},
		"a process that was started again is scraped before it stands": {
			at(8001, "b", history.Elected, token(9), until(9000)), at(8100, "b", history.Ended, token(9), value("taken")),
			at(8200, "b", history.Left), scraped(8400, "b", 0, nil), at(8450, "b", history.Ready),
		},
		"a process that was started again counts from zero": {
			at(8000, "b", history.Ready), at(8001, "b", history.Elected, token(9), until(9000)), at(8100, "b", history.Ended, token(9), value("taken")),
			scraped(8349, "b", 0, nil), scraped(8500, "b", 0, map[string]int{"taken": 1}),
		},
	} {
		for _, f := range oracle.Judge(asked(more...), oracle.Asked()...) {
			require.Equal(t, oracle.Kept, f.Verdict, "%s: %s", name, f.Detail)
		}
	}
	f := oracle.Judge(asked(), oracle.Asked()...)
	require.Equal(t, "5 times yes while it was so; 3 questions in the TTL after a term", f[0].Detail)
	require.Equal(t, "12 scrapes; 3 ends were seen by the next one, and 2 counted in time", f[1].Detail)
}

func TestARuleFindsAnAnswerThatIsNotTrue(t *testing.T) {
	for name, c := range map[string]struct {
		more    history.Event
		answers string // what AnswersInTime says; "" if the answer is a scrape
		scrapes string
	}{
		"it trusts its lease no longer": {said(4580, "b", history.Yes, 2),
			"b said that it leads under token 2, to a question that was asked 0.0 ms after its term", ""},
		"it wakes": {said(5990, "b", history.Yes, 2),
			"b said that it leads under token 2, to a question that was asked 1.41 s after its term", ""},
		"it has resigned": {said(7101, "c", history.Yes, 3),
			"c said that it leads under token 3, to a question that was asked 1.0 ms after its term", ""},
		"it never led": {said(3000, "a", history.Yes, 9),
			"a said that it leads under token 9, and no request that was granted allows that", ""},
		"nobody knows it": {said(3000, "d", history.Yes, 9),
			"d said that it leads under token 9, and no request that was granted allows that", ""},
		"a scrape shows what was": {scraped(6100, "b", 2, nil),
			"", "a scrape shows that b leads under token 2, to a question that was asked 1.52 s after its term"},
		"a scrape shows what was before it resigned": {scraped(7200, "c", 3, nil),
			"", "a scrape shows that c leads under token 3, to a question that was asked 0.10 s after its term"},
	} {
		f := oracle.Judge(asked(c.more), oracle.Asked()...)
		for i, detail := range []string{c.answers, c.scrapes} {
			if detail == "" {
				require.Equal(t, oracle.Kept, f[i].Verdict, "%s: %s", name, f[i].Detail)
				continue
			}
			require.Equal(t, oracle.Broken, f[i].Verdict, name)
			require.Equal(t, detail, f[i].Detail, name)
		}
	}
}

func TestAnEndThatIsNotCountedIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		ends   map[string]int
		detail string
	}{
		"not at all":            {nil, "a scrape 0.50 s after b knew that its term under token 2 was over does not count it as expired"},
		"for another reason":    {map[string]int{"taken": 1}, "a scrape 0.50 s after b knew that its term under token 2 was over does not count it as expired"},
		"as it is, and another": {map[string]int{"expired": 1, "taken": 1}, ""},
	} {
		h := asked()
		for i, e := range h.Events {
			if e.Kind == history.Scraped && e.At == 6501*ms {
				h.Events[i].Ends = c.ends
			}
		}
		f := oracle.Judge(h, oracle.ScrapesInTime)[0]
		require.Equal(t, c.detail != "", f.Verdict == oracle.Broken, name)
		if c.detail != "" {
			require.Equal(t, c.detail, f.Detail, name)
		}
	}
	slow := asked()
	slow.Slack = 249 * ms
	slow.Events = slices.DeleteFunc(slow.Events, func(e history.Event) bool { return e.Kind == history.Scraped && e.At == 6501*ms })
	slow.Events = append(slow.Events, scraped(6498, "b", 0, nil))
	require.NotEqual(t, oracle.Broken, oracle.Judge(slow, oracle.ScrapesInTime)[0].Verdict)
	slow.Events = append(slow.Events, scraped(6501, "b", 0, nil))
	require.Equal(t, oracle.Broken, oracle.Judge(slow, oracle.ScrapesInTime)[0].Verdict)
	untold := asked(
		at(8000, "c", history.Elected, token(9), until(9000)), at(8100, "c", history.Ended, token(9)), // it was asked to give way, say
		scraped(8349, "c", 0, map[string]int{"resigned": 1}), scraped(8500, "c", 0, map[string]int{"resigned": 1}))
	require.Contains(t, oracle.Judge(untold, oracle.ScrapesInTime)[0].Detail, "does not count it as anything")
}

func TestOneThatNeverAnswersShowsNothing(t *testing.T) {
	silent := good()
	silent.Events = append(silent.Events, said(500, "a", history.Yes, 1), scraped(500, "a", 1, nil))
	for i := range 3 {
		require.NotContains(t, fmt.Sprint(oracle.Judge(silent, oracle.Asked()...)), "never answered", "a few questions come before it is there")
		silent.Events = append(silent.Events, down(5000+i, "c", history.Said), down(5000+i, "c", history.Scraped))
	}
	silent.Events = append(silent.Events, down(5500, "c", history.Said), down(5500, "c", history.Scraped))
	for i, detail := range []string{"c was asked again and again, and never answered", "c was scraped again and again, and never answered"} {
		f := oracle.Judge(silent, oracle.Asked()...)[i]
		require.Equal(t, oracle.Broken, f.Verdict)
		require.Equal(t, detail, f.Detail)
	}
	for _, f := range oracle.Judge(good(), oracle.Asked()...) {
		require.Equal(t, oracle.Silent, f.Verdict, f.Detail)
	}
	early := good()
	early.Events = append(early.Events, scraped(500, "a", 1, nil))
	f := oracle.Judge(early, oracle.ScrapesInTime)[0]
	require.Equal(t, oracle.Silent, f.Verdict)
	require.Equal(t, "no scrape came after the end of a term", f.Detail)
}
