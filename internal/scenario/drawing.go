package scenario

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/history"
	"github.com/electkv/election/internal/seam"
)

// How wide a page shows drawings.
const (
	drawingWidth = 74
	pageWidth    = 80
)

// drawn matches a drawing on the page: between a line that names its scenario and
// one that ends it.
var drawn = regexp.MustCompile(`(?ms)^<!-- drawn from (\S+) -->\n(.*?)^<!-- end -->$`)

// Draw looks whether the timelines on a page are what its scenarios come to, and
// whether each scenario of a folder that is for a page has its place there. Told to
// update, it writes the page anew.
func Draw(t *testing.T, engine seam.Engine, page, folder string, update bool) {
	b, err := os.ReadFile(page)
	require.NoError(t, err)
	shown := map[string]bool{}
	got := drawn.ReplaceAllStringFunc(string(b), func(old string) string {
		name := drawn.FindStringSubmatch(old)[1]
		shown[filepath.Join(folder, name)] = true
		return fmt.Sprintf("<!-- drawn from %s -->\n```text\n%s```\n<!-- end -->", name, drawScenario(t, engine, filepath.Join(folder, name), update))
	})
	files, err := filepath.Glob(filepath.Join(folder, "doc-*.txt"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		require.Truef(t, shown[file], "%s has no place on %s", file, page)
	}
	if update {
		require.NoError(t, os.WriteFile(page, []byte(got), 0o644))
		return
	}
	require.Equal(t, string(b), got, "if this is as it should be: go test . -run TestScenarios -update")
}

// drawScenario draws the trace that a scenario comes to, as its file has it.
func drawScenario(t *testing.T, engine seam.Engine, file string, update bool) string {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	top, trace, _ := strings.Cut(string(text), divider)
	if update { // this test runs before the one that writes the file
		s, err := parseScript(top)
		require.NoErrorf(t, err, "%s", file)
		synctest.Test(t, func(t *testing.T) { trace = play(t, engine, s) })
	}
	h, err := historyOf(trace)
	require.NoErrorf(t, err, "%s", file)
	drawing := history.Timeline(h, drawingWidth)
	for line := range strings.Lines(drawing) {
		require.LessOrEqualf(t, utf8.RuneCountInString(line), pageWidth, "%s: %s", file, line)
	}
	return drawing
}

// traceLine matches a line of a trace: the time, whether it is a command, and the
// rest.
var traceLine = regexp.MustCompile(`^ *(\d+\.\d)s  (> )?(.*)$`)

// historyOf returns the history that a trace tells of. It refuses what a timeline
// would not show, or not rightly.
func historyOf(trace string) (history.History, error) {
	d := drawer{}
	for line := range strings.Lines(trace) {
		line = strings.TrimSuffix(line, "\n")
		m := traceLine.FindStringSubmatch(line)
		if m == nil {
			return history.History{}, fmt.Errorf("%q is no line of a trace", line)
		}
		seconds, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			return history.History{}, err
		}
		d.at = time.Duration(seconds * float64(time.Second))
		take := d.told
		if m[2] != "" {
			take = d.commanded
		}
		if !take(strings.Fields(m[3])) {
			return history.History{}, fmt.Errorf("cannot draw %q", line)
		}
	}
	return history.History{Events: d.events}, nil
}

// A drawer turns the lines of a trace into events.
type drawer struct {
	at     time.Duration // of the line
	leader string        // who leads
	term   uint64        // which one
	events []history.Event
}

const forEver = 1000 * time.Hour

func (d *drawer) add(e history.Event) bool {
	e.At = d.at
	d.events = append(d.events, e)
	return true
}

// commanded takes in a command.
func (d *drawer) commanded(words []string) bool {
	switch words[0] {
	case "candidate":
		return d.add(history.Event{Who: words[1], Kind: history.Ready})
	case "kill":
		return d.add(history.Event{Who: words[1], Kind: history.Killed})
	case "request", "transfer", "resign": // the leader is asked
		return d.leader != "" && d.add(history.Event{Who: d.leader, Kind: history.Asked})
	}
	return false // what comes of the others is not only drawn by these marks
}

// told takes in what a candidate was told, or said.
func (d *drawer) told(words []string) bool {
	who, what := words[0], strings.Join(words[1:], " ")
	became := func(role string) bool {
		return d.add(history.Event{Who: who, Kind: history.Became, Value: role})
	}
	switch {
	case what == "stands":
		return became("candidate")
	case what == "does not stand":
		return became("idle")
	case what == "is heir":
		return became(history.Heir)
	case strings.HasPrefix(what, "leads (term "):
		d.leader, d.term = who, d.term+1
		return d.add(history.Event{Who: who, Kind: history.Elected, Token: d.term, Until: forEver})
	case strings.HasPrefix(what, "leads no more: "):
		return d.add(history.Event{Who: who, Kind: history.Ended, Token: d.term})
	case who == "at": // the end
		return d.add(history.Event{Kind: history.Settled})
	}
	return who == "the" // the asker, who has no line
}
