package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/oracle"
)

var update = flag.Bool("update", false, "write testdata/golden anew")

// report runs the command on a folder of results, in the root of the repository,
// and returns what it wrote.
func report(t *testing.T, results, out string) (status int, log string) {
	t.Helper()
	results, err := filepath.Abs(results)
	require.NoError(t, err)
	out, err = filepath.Abs(out)
	require.NoError(t, err)
	t.Chdir("../..")
	var said, complained bytes.Buffer
	status = run(t.Context(), []string{"-results", results, "-o", out}, &said, &complained)
	return status, complained.String()
}

// files returns the content of all files below a folder.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		found[filepath.ToSlash(name)] = string(text)
		return err
	}))
	return found
}

// copied returns a copy of the sample, with some files changed, or removed if
// they are to be empty.
func copied(t *testing.T, changes map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("testdata/results")))
	for name, text := range changes {
		if text == "" {
			require.NoError(t, os.Remove(filepath.Join(dir, name)))
			continue
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

func TestTheReportSaysWhatTheResultsHoldAndWhatTheyLack(t *testing.T) {
	out := t.TempDir()
	golden, err := filepath.Abs("testdata/golden")
	require.NoError(t, err)
	if *update {
		out = golden
	}
	status, log := report(t, "testdata/results", filepath.Join(out, "reliability.md"))
	require.Equal(t, 1, status, "a row was not as expected")
	require.Equal(t, "report: etcd: 10 store down for 3 TTL: broken: a leader in time: nobody led within 4.40 s after it\n", log)
	require.Equal(t, files(t, golden), files(t, out))
}

func TestResultsWithoutFaultLeadToStatusZero(t *testing.T) {
	dir := copied(t, nil)
	rows, err := os.ReadFile(filepath.Join(dir, "faults-etcd.ndjson"))
	require.NoError(t, err)
	kept := []string{}
	for line := range strings.Lines(string(rows)) {
		if !strings.Contains(line, `"verdict": "no"`) {
			kept = append(kept, line)
		}
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "faults-etcd.ndjson"), []byte(strings.Join(kept, "")), 0o600))
	out := filepath.Join(t.TempDir(), "reliability.md")
	status, log := report(t, dir, out)
	require.Zero(t, status, log)
	text, err := os.ReadFile(out)
	require.NoError(t, err)
	require.Contains(t, string(text), "Nothing that must not be was found in what was run.")
	require.Contains(t, string(text), "not run: 10")
}

// Nothing at all was run: nowhere is there a yes, or a figure.
func TestAnEmptyFolderProvesNothing(t *testing.T) {
	out := filepath.Join(t.TempDir(), "reliability.md")
	status, log := report(t, t.TempDir(), out)
	require.Zero(t, status, log)
	text, err := os.ReadFile(out)
	require.NoError(t, err)
	require.NotRegexp(t, `\|\s*yes`, string(text))
	require.Regexp(t, `\| redis \| not run \| not run \|`, string(text))
	for _, line := range []string{
		"- Faults on real servers: not run.", "- Simulation: not run.", "- Planted bugs in the simulation: not run.", "- Planted bugs on real servers: not run.",
		"- what the run was made with (setting.json)", "- the simulation (simulation.json)", "- the planted bugs in the simulation (planted.json)",
		"What this run was made with was not recorded.",
	} {
		require.Contains(t, string(text), line+"\n")
	}
}

func TestGarbageIsRefused(t *testing.T) {
	good := `{"store":"etcd","number":1,"fault":"f","applies":true,"expected":"green","verdict":"yes","findings":[{"promise":"p","verdict":"kept"}]}`
	with := func(old, new string) string {
		require.Contains(t, good, old)
		return strings.Replace(good, old, new, 1)
	}
	for _, c := range []struct{ file, text, problem string }{
		{"faults-etcd.ndjson", `{`, "faults-etcd.ndjson: result 1: unexpected EOF"},
		{"faults-etcd.ndjson", good + good, "result 2: row 01 is there twice"},
		{"faults-etcd.ndjson", with(`"etcd"`, `"redis"`), `it is of "redis"`},
		{"faults-etcd.ndjson", with(`"number":1`, `"number":0`), "it has no number or no name"},
		{"faults-etcd.ndjson", with(`"number":1`, `"number":"1"`), "cannot unmarshal string"},
		{"faults-etcd.ndjson", with(`"applies":true`, `"applies":false`), "it does not say why it does not apply"},
		{"faults-etcd.ndjson", with(`"verdict":"yes"`, `"verdict":"maybe"`), `its verdict is "maybe"`},
		{"faults-etcd.ndjson", with(`"verdict":"yes",`, ``), `its verdict is ""`},
		{"faults-etcd.ndjson", with(`"green"`, `"red without "`), `it expects "red without "`},
		{"faults-etcd.ndjson", with(`"green"`, `"grey"`), `it expects "grey"`},
		{"faults-etcd.ndjson", with(`"green"`, `"may be red: ","may":["p"]`), `it expects "may be red: "`},
		{"faults-etcd.ndjson", with(`"green"`, `"may be red: luck"`), `it expects "may be red: luck", and names 0 promises`},
		{"faults-etcd.ndjson", with(`"green"`, `"green","may":["p"]`), `it expects "green", and names 1 promises`},
		{"faults-etcd.ndjson", with(`{"promise":"p","verdict":"kept"}`, ``), "it has no findings"},
		{"faults-etcd.ndjson", with(`"kept"`, `"fine"`), `a finding about "p" is "fine"`},
		{"faults-etcd.ndjson", with(`"number":1`, `"number":1,"overlaps":-1`), "it counts less than nothing"},
		{"faults-etcd.ndjson", with(`"number":1`, `"number":1,"history":"../../etc/passwd"`), "its history is outside the folder"},
		{"faults-etcd.ndjson", with(`"number":1`, `"number":1,"waits":[{"took_ns":5}]`), "a wait of 5ns, promised within 0s"},
		{"bugs-etcd.ndjson", good + with(`"applies":true`, `"applies":true,"bug":"b"`) + good, "bugs-etcd.ndjson: result 3: row 01 is there twice"},
		{"simulation.json", `{"schedules":1}`, "simulation.json: it simulated nothing"},
		{"simulation.json", `[]`, "simulation.json: json: cannot unmarshal array"},
		{"planted.json", `[]`, "planted.json: there is no bug in it"},
		{"planted.json", `[{"caught":true}]`, "a bug or its rule has no name"},
		{"linear-etcd.json", `null`, "linear-etcd.json: it holds nothing"},
		{"linear-etcd.json", `{"store":"etcd","kept":true}`, "linear-etcd.json: 0 operations"},
		{"soak-etcd.ndjson", with(`"etcd"`, `"redis"`), `soak-etcd.ndjson: result 1: it is of "redis"`},
		{"history/etcd-01.ndjson", `{}{}{`, "etcd-01.ndjson: history: event 2: unexpected EOF"},
	} {
		t.Run(c.problem, func(t *testing.T) {
			dir := copied(t, map[string]string{c.file: c.text})
			status, log := report(t, dir, filepath.Join(t.TempDir(), "r.md"))
			require.Equal(t, 2, status)
			require.Contains(t, log, c.problem)
		})
	}
	status, _ := report(t, "testdata/nothing", filepath.Join(t.TempDir(), "r.md"))
	require.Equal(t, 2, status)
}

func TestWhatMustNotBeIsAnAlarm(t *testing.T) {
	kept := oracle.Finding{Promise: oneLeader(), Verdict: oracle.Kept}
	broken := oracle.Finding{Promise: oneLeader(), Verdict: oracle.Broken, Detail: "two led"}
	silent := oracle.Finding{Promise: oneLeader(), Verdict: oracle.Silent}
	fence := oracle.Finding{Promise: fenceHolds(), Verdict: oracle.Kept}
	other := oracle.Finding{Promise: "other", Verdict: oracle.Broken, Detail: "it was"}
	luck := func(overlaps int, found ...oracle.Finding) fault {
		return fault{Verdict: "yes", Expected: "may be red: luck", May: []string{oneLeader()}, Overlaps: overlaps, Findings: found}
	}
	for _, c := range []struct {
		name   string
		fault  fault
		alarms []string
	}{
		{"green as expected", fault{Verdict: "yes", Expected: "green", Findings: oracle.Findings{kept}}, nil},
		{"an operator's overlap", fault{Verdict: "yes", Expected: "green", Overlaps: 1, Findings: oracle.Findings{kept}}, nil},
		{"red as expected", fault{Verdict: "yes", Expected: "red without it", Overlaps: 1, Findings: oracle.Findings{broken}}, nil},
		{"one that does not apply", fault{Applies: false}, nil},
		{"green by luck", luck(0, kept, fence), nil},
		{"red by luck", luck(1, broken, fence), nil},
		{"red by luck, and the fence unseen", luck(1, broken), []string{"what the store may break was not shown to end at the fence"}},
		{"red by luck, and something else is broken", luck(1, broken, fence, other), []string{"other: it was"}},
		{"not as expected", fault{Verdict: "no", Expected: "green", Findings: oracle.Findings{kept}}, []string{"it was not as expected"}},
		{"not as expected, and why", fault{Verdict: "no", Wrong: []string{"a", "b"}, Findings: oracle.Findings{kept}}, []string{"a; b"}},
		{"said to be green, but broken", fault{Verdict: "yes", Expected: "green", Findings: oracle.Findings{broken}}, []string{"one leader at a time: two led"}},
		{"said to be red, but whole", fault{Verdict: "yes", Expected: "red without it", Findings: oracle.Findings{kept}}, []string{"it should be red, and nothing is broken"}},
		{"an overlap that no rule spoke about", fault{Verdict: "yes", Expected: "green", Overlaps: 2, Findings: oracle.Findings{silent}}, []string{"2 overlaps"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.fault.Applies = c.name != "one that does not apply"
			require.Equal(t, c.alarms, c.fault.alarms())
		})
	}
	r := &results{
		Stores: []string{"x"},
		Linear: map[string]linear{"x": {Detail: "at s"}},
		Soak: map[string][]fault{"x": {{Number: 54, Letter: "-2", Fault: "random faults", Applies: true, Verdict: "no", Overlaps: 3,
			Wrong: []string{"two led"}, Findings: oracle.Findings{broken}}}},
		Simulation: &simulation{Overlaps: 1},
		Planted:    []planted{{Bug: "b", Rule: "r"}},
		Bugs: map[string][]fault{"x": {{Number: 4, Fault: "f", Bug: "b", Applies: true, Verdict: "yes", Expected: "red without care", Findings: oracle.Findings{kept}},
			{Number: 5, Fault: "f", Bug: "b", Applies: true, Verdict: "yes", Expected: "red without care", Findings: oracle.Findings{broken}}}},
	}
	require.Equal(t, []string{
		"x: 54-2 random faults: two led",
		`x: planted bug "b" was not caught in 04 f: it should be red, and nothing is broken`,
		"x: its answers cannot be told as one story: at s",
		"simulation: 1 overlaps",
		`planted bug "b": the rule "r" did not see it`,
	}, r.alarms())
}

func TestAPercentileIsTheNearestRank(t *testing.T) {
	upTo := func(n int) []time.Duration {
		all := []time.Duration{}
		for i := range n {
			all = append(all, time.Duration(i+1))
		}
		return all
	}
	for _, c := range []struct {
		n, p int
		d    time.Duration
		ok   bool
	}{
		{0, 50, 0, false}, {1, 50, 1, false}, {2, 50, 1, true}, {3, 50, 2, true}, {4, 50, 2, true}, {100, 50, 50, true}, {101, 50, 51, true},
		{99, 99, 99, false}, {100, 99, 99, true}, {101, 99, 100, true}, {1000, 99, 990, true},
		{100, 0, 0, false}, {100, 100, 0, false},
	} {
		d, ok := percentile(upTo(c.n), c.p)
		require.Equal(t, c.d, d, "p%d of %d", c.p, c.n)
		require.Equal(t, c.ok, ok, "p%d of %d", c.p, c.n)
	}
}

func TestTheMatrixSaysYesOnlyIfEveryRowShowsOneLeader(t *testing.T) {
	c := circumstance{"", []int{9, 10, 11}, "yes"}
	row := func(n int, letter, expected string, verdict oracle.Verdict) fault {
		return fault{Number: n, Letter: letter, Applies: true, Expected: expected, Verdict: "yes", Findings: oracle.Findings{
			{Promise: oneLeader(), Verdict: verdict}, {Promise: "other", Verdict: oracle.Kept}}}
	}
	green := func(n int) fault { return row(n, "", "green", oracle.Kept) }
	none := func(n int) fault { return fault{Number: n, Reason: "no"} }
	failed := green(10)
	failed.Verdict = "no"
	lucky := func(verdict oracle.Verdict) fault {
		f := row(10, "", "may be red: luck", verdict)
		f.May = []string{oneLeader()}
		f.Findings = append(f.Findings, oracle.Finding{Promise: fenceHolds(), Verdict: oracle.Kept})
		return f
	}
	other := row(11, "a", "red without it", oracle.Kept)
	other.Findings[1].Verdict = oracle.Broken
	for _, c2 := range []struct {
		name string
		rows []fault
		want string
	}{
		{"all green", []fault{green(9), green(10), green(11), green(1)}, "yes"},
		{"some do not apply", []fault{green(9), none(10), none(11)}, "yes"},
		{"none applies", []fault{none(9), none(10), none(11)}, "–"},
		{"none was run", []fault{green(1)}, "not run"},
		{"one was not run", []fault{green(9), green(11)}, "not run: 10"},
		{"one failed", []fault{green(9), failed}, "**no**: 10"},
		{"one shows nothing", []fault{green(9), row(10, "", "green", oracle.Silent), green(11)}, "not shown: 10"},
		{"one needs a remedy", []fault{green(9), green(10), row(11, "a", "red without AOF", oracle.Broken), row(11, "b", "green with AOF", oracle.Kept)}, "only with AOF"},
		{"one needs one of two remedies", []fault{green(9), green(10), row(11, "a", "red without AOF, or a pause", oracle.Broken), row(11, "b", "green with a pause", oracle.Kept)}, "only with AOF, or a pause"},
		{"a row that is green shows no remedy", []fault{green(9), green(10), row(11, "a", "red without AOF", oracle.Broken), row(11, "b", "green", oracle.Kept)}, "**no** without AOF"},
		{"the remedy shown is another", []fault{green(9), green(10), row(11, "a", "red without AOF", oracle.Broken), row(11, "b", "green with a pause", oracle.Kept)}, "**no** without AOF"},
		{"one has no remedy", []fault{green(9), green(10), row(11, "a", "red without AOF", oracle.Broken)}, "**no** without AOF"},
		{"the remedy is of no use", []fault{green(9), green(10), row(11, "a", "red without AOF", oracle.Broken), row(11, "b", "green with AOF", oracle.Broken)}, "**no**: 11b"},
		{"one was green by luck", []fault{green(9), lucky(oracle.Kept), green(11)}, "**not always**: luck"},
		{"one was red by luck", []fault{green(9), lucky(oracle.Broken), green(11)}, "**not always**: luck"},
		{"one may be red, and one was not run", []fault{green(9), lucky(oracle.Kept)}, "**not always**: luck"},
		{"another promise is broken on purpose", []fault{green(9), green(10), other}, "yes"},
	} {
		t.Run(c2.name, func(t *testing.T) { require.Equal(t, c2.want, c.judge(c2.rows)) })
	}
}

func TestWhatOneJudgeOfExpiryShowsIsNotSaidOfAnother(t *testing.T) {
	green := fault{Number: 29, Applies: true, Expected: "green", Verdict: "yes", Findings: oracle.Findings{{Promise: oneLeader(), Verdict: oracle.Kept}}}
	none := fault{Number: 29, Reason: "no"}
	c := circumstance{"", []int{29}, "yes"}
	r := &results{Faults: map[string][]fault{"x": {green}, "x3": {none}, "x-ring": {none}, "x-observed": {none}}}
	require.Equal(t, "yes (as x)", r.under(c, "x3"))
	require.Equal(t, "yes (as x)", r.under(c, "x-ring"))
	require.Equal(t, nothing, r.under(c, "x-observed"))
	r.Faults["x-observed"] = []fault{green}
	r.Faults["x"] = []fault{none}
	require.Equal(t, nothing, r.under(c, "x"))
	require.Equal(t, "yes", r.under(c, "x-observed"))
}

// The numbers are those of the fault plan.
func TestEachCircumstanceNeedsEachOfItsRows(t *testing.T) {
	for i, numbers := range [][]int{{1, 2, 3, 4, 5, 6, 8, 15, 16, 17, 18, 24, 25, 26}, {9, 10}, {11}, {29}, {13, 14, 46, 47}, {32}} {
		c := circumstances()[i]
		rows := []fault{}
		for _, n := range numbers {
			rows = append(rows, fault{Number: n, Applies: true, Expected: "green", Verdict: "yes", Findings: oracle.Findings{{Promise: oneLeader(), Verdict: oracle.Kept}}})
		}
		require.Equal(t, c.yes, c.judge(rows), c.name)
		for j := range rows {
			require.Contains(t, c.judge(slices.Concat(rows[:j], rows[j+1:])), "not run", "%s without row %d", c.name, numbers[j])
		}
	}
	require.Len(t, circumstances(), 6)
}

func TestARowThatMayBeRedIsNeverAYes(t *testing.T) {
	for verdict, said := range map[oracle.Verdict]string{oracle.Kept: "green", oracle.Broken: "red"} {
		f := fault{Number: 13, Applies: true, Expected: "may be red: luck", May: []string{oneLeader()}, Verdict: "yes",
			Findings: oracle.Findings{{Promise: oneLeader(), Verdict: verdict}, {Promise: fenceHolds(), Verdict: oracle.Kept}}}
		r := &results{Stores: []string{"x"}, Faults: map[string][]fault{"x": {f}}}
		require.NotContains(t, r.faultTable(), "yes")
		require.Contains(t, r.faultTable(), "1. "+said+" this time, by luck: luck")
	}
}

func TestWaitsCountOnlyWhereALeaderIsPromised(t *testing.T) {
	rows := func(expected string, took ...time.Duration) fault {
		f := fault{Expected: expected}
		for _, d := range took {
			f.Waits = append(f.Waits, wait{"a cut", d, 9})
		}
		return f
	}
	r := &results{Stores: []string{"x"}, Faults: map[string][]fault{"x": {rows("green", 7, 0, 3), rows("red without it", 8), rows("green", 5)}}}
	require.Equal(t, []delay{{"x", 9, list{"a cut"}, []time.Duration{3, 5, 7}}}, r.delays())
}

func TestEveryPictureIsWellFormed(t *testing.T) {
	n := 0
	for name, text := range files(t, "testdata/golden") {
		if filepath.Ext(name) != ".svg" {
			continue
		}
		n++
		for d := xml.NewDecoder(strings.NewReader(text)); ; {
			_, err := d.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err, name)
		}
	}
	require.Equal(t, 2, n)
}

func TestTheClaimIsQuotedWordForWord(t *testing.T) {
	sections, err := claims("../../doc.go")
	require.NoError(t, err)
	said, err := os.ReadFile("../../doc.go")
	require.NoError(t, err)
	// Only the signs that make it a comment, a quotation or a list may differ.
	words := func(text string) string {
		text = regexp.MustCompile(`(?m)^(//|>)? *(- )?|\\`).ReplaceAllString(text, "")
		return strings.Join(strings.Fields(text), " ")
	}
	require.Len(t, sections, 3)
	for _, s := range sections {
		require.Greater(t, len(words(s.Text)), 300, s.Title)
		require.Contains(t, words(string(said)), "# "+s.Title+" "+words(s.Text)+" ", s.Title)
	}
	_, err = claims("main.go")
	require.EqualError(t, err, `main.go: no heading "What is promised"`)
}

func TestTextsOfResultsAreNoMarkdown(t *testing.T) {
	require.Equal(t, `a \| b &lt;script&gt; \*c\* \[d\](e) \_ \\ f`, plain("a | b <script> *c* [d](e) _ \\\nf"))
}

func TestARunBeginsInAnEmptyFolder(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "old.json"), nil, 0o600))
	var log bytes.Buffer
	require.Equal(t, 2, run(t.Context(), []string{"-begin", "-results", dir}, io.Discard, &log))
	require.Contains(t, log.String(), "is not empty")
	require.NotContains(t, fmt.Sprint(files(t, dir)), settingFile)
}
