//go:build linux

package faults

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/oracle"
	"github.com/electkv/election/internal/testenv/install"
)

// twoTokens is the expression of the alert, as it is delivered.
var twoTokens = sync.OnceValues(func() (string, error) {
	text, err := os.ReadFile("../../deploy/prometheus/alerts.yml")
	if err != nil {
		return "", err
	}
	var file struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		return "", err
	}
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			if rule.Alert == "TwoTokens" {
				return rule.Expr, nil
			}
		}
	}
	return "", fmt.Errorf("no alert TwoTokens in %s", text)
})

// trueAlarms is the rule that the alert TwoTokens fires only if two candidates led at the same time,
// or tokens went back. Prometheus itself evaluates its expression over what was scraped.
//
// The alert is made for intervals of some seconds between scrapes, and a row has a few scrapes per
// second. So Prometheus is told that a second was a minute, or whatever makes the interval usual.
func trueAlarms(e oracle.Evidence) oracle.Finding {
	f := oracle.Finding{Promise: "TwoTokens fires for two leaders only", Verdict: oracle.Silent, Detail: "nobody was scraped"}
	scrapes := e.Of("", history.Scraped)
	if len(scrapes) == 0 {
		return f
	}
	leads := 0
	for _, ev := range scrapes {
		leads += min(ev.Count, 1)
	}
	f.Verdict, f.Count, f.Detail = oracle.Kept, len(scrapes), fmt.Sprintf("%d scrapes, %d of leaders: it did not fire", len(scrapes), leads)
	fires, err := newRecording(scrapes, scrapeEach(e.TTL)).fires()
	switch {
	case err != nil:
		f.Verdict, f.Detail = oracle.Broken, err.Error()
	case !fires:
	case oracle.Overlaps(e.History) > 0 || oracle.Judge(e.History, oracle.TokensGrow)[0].Verdict == oracle.Broken:
		f.Detail = "it fired, and two led, or tokens went back"
	default:
		f.Verdict, f.Detail = oracle.Broken, "it fired, though no two terms overlap"
	}
	return f
}

// usualInterval is that between two scrapes of a Prometheus. A scrape may take as long here: that
// is less than the alert allows for.
const usualInterval = 15 * time.Second

// A recording is what Prometheus has recorded of a row: a sample or none at each second of its time. It
// is a test of promtool.
type recording struct {
	Interval string           `yaml:"interval"`
	Series   []recordedSeries `yaml:"input_series"`
	Tests    []question       `yaml:"promql_expr_test"`
	seconds  int
}

type recordedSeries struct {
	Series string `yaml:"series"`
	Values string `yaml:"values"`
}

// A question is whether an expression has an answer at a time. None is expected.
type question struct {
	Expr    string   `yaml:"expr"`
	At      string   `yaml:"eval_time"`
	Samples []string `yaml:"exp_samples"`
}

// newRecording records scrapes of election_token. A scrape that failed ends the series until the next.
func newRecording(scrapes []history.Event, interval time.Duration) *recording {
	second := func(at time.Duration) int {
		return int((at - scrapes[0].At).Seconds() * float64(usualInterval/time.Second) / interval.Seconds())
	}
	r := &recording{Interval: "1s", seconds: second(scrapes[len(scrapes)-1].At) + 1}
	samples := map[string][]string{}
	names := []string{}
	for _, ev := range scrapes {
		if samples[ev.Who] == nil {
			samples[ev.Who] = slices.Repeat([]string{"_"}, r.seconds)
			names = append(names, ev.Who)
		}
		sample := "stale"
		if ev.Result == history.OK {
			sample = fmt.Sprint(ev.Token)
		}
		samples[ev.Who][second(ev.At)] = sample
	}
	for _, who := range names {
		r.Series = append(r.Series, recordedSeries{
			Series: fmt.Sprintf("election_token{job=%q, election=%q, instance=%q}", "faults", "played", who),
			Values: strings.Join(samples[who], " "),
		})
	}
	return r
}

// fires reports whether the alert's expression holds at any time.
func (r *recording) fires() (bool, error) {
	expr, err := twoTokens()
	if err != nil {
		return false, err
	}
	const each = 60 // seconds: promtool takes no more than some thousand samples for a question
	for end := each; end < r.seconds+each; end += each {
		r.Tests = append(r.Tests, question{
			Expr: fmt.Sprintf("count(count_over_time((%s)[%ds:5s]))", expr, each), At: fmt.Sprintf("%ds", end),
		})
	}
	text, err := yaml.Marshal(map[string]any{"tests": []*recording{r}})
	if err != nil {
		return false, err
	}
	promtool, err := install.Promtool()
	if err != nil {
		return false, err
	}
	file, err := os.CreateTemp("", "election-alert-*.yml")
	if err != nil {
		return false, err
	}
	defer os.Remove(file.Name())
	if _, err := file.Write(text); err != nil {
		return false, err
	}
	if err := file.Close(); err != nil {
		return false, err
	}
	var said bytes.Buffer
	tool := exec.CommandContext(context.Background(), promtool, "test", "rules", file.Name())
	tool.Stdout, tool.Stderr = &said, &said
	err = tool.Run()
	switch text := said.String(); {
	case err == nil && strings.Contains(text, "SUCCESS"):
		return false, nil
	case strings.Contains(text, "got:") && strings.Contains(text, "exp: nil"):
		return true, nil
	default:
		return false, fmt.Errorf("promtool: %w: %s", err, text)
	}
}

// TestTheAlertFiresForTwoLeadersAndForNothingElse is what Prometheus says of recordings whose meaning
// is known: of candidates a and b, with a TTL of a second and four scrapes in it. b is scraped a
// moment after a.
func TestTheAlertFiresForTwoLeadersAndForNothingElse(t *testing.T) {
	const ms = time.Millisecond
	leads := func(who string, token uint64, from, until time.Duration) history.Event {
		return history.Event{At: from, Who: who, Kind: history.Elected, Token: token, Until: until}
	}
	// shows is a candidate that leads under a token from one time to another, and does not answer
	// from a third to a fourth.
	type shows struct {
		token        uint64
		from, until  time.Duration
		froze, awoke time.Duration
	}
	scraped := func(who string, s shows, at time.Duration) history.Event {
		e := history.Event{At: at, Who: who, Kind: history.Scraped, Result: history.OK}
		switch {
		case s.froze <= at && at < s.awoke:
			e.Result = history.Unknown
		case s.from <= at && at < s.until:
			e.Token, e.Count = s.token, 1
		}
		return e
	}
	for name, c := range map[string]struct {
		a, b   shows
		led    []history.Event
		broken bool
		says   string
	}{
		"one leads after the other": {
			a: shows{token: 5, until: 2020 * ms}, b: shows{token: 7, from: 2020 * ms, until: time.Hour}, says: "it did not fire",
		},
		"one leads after the other, with tokens that go back": {
			a: shows{token: 7, until: 2020 * ms}, b: shows{token: 5, from: 2020 * ms, until: time.Hour},
			led:  []history.Event{leads("a", 7, 0, 2000*ms), leads("b", 5, 2020*ms, time.Hour)},
			says: "it fired, and two led, or tokens went back",
		},
		"one is frozen when the other leads": {
			a: shows{token: 5, until: 2020 * ms, froze: 1000 * ms, awoke: 5000 * ms},
			b: shows{token: 7, from: 2020 * ms, until: time.Hour}, says: "it did not fire",
		},
		"one does not know that it is over": {
			a: shows{token: 5, until: time.Hour}, b: shows{token: 7, from: 2020 * ms, until: time.Hour},
			led:    []history.Event{leads("a", 5, 0, 2000*ms), leads("b", 7, 2020*ms, time.Hour)},
			broken: true, says: "it fired, though no two terms overlap",
		},
		"two lead": {
			a: shows{token: 5, until: time.Hour}, b: shows{token: 7, from: 2020 * ms, until: time.Hour},
			led:  []history.Event{leads("a", 5, 0, time.Hour), leads("b", 7, 2020*ms, time.Hour)},
			says: "it fired, and two led, or tokens went back",
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := history.History{About: history.About{TTL: time.Second}, Events: c.led}
			for at := time.Duration(0); at < 6*time.Second; at += 250 * ms {
				h.Events = append(h.Events, scraped("a", c.a, at), scraped("b", c.b, at+70*ms))
			}
			f := oracle.Judge(h, trueAlarms)[0]
			require.Contains(t, f.Detail, c.says)
			require.Equal(t, c.broken, f.Verdict == oracle.Broken)
			require.Equal(t, 48, f.Count)
		})
	}
	require.Equal(t, oracle.Silent, oracle.Judge(history.History{}, trueAlarms)[0].Verdict)
}
