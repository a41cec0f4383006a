// Package run_test plays the pages of docs/run: each block between fences is run as it is written
// there, in order, on real servers and with the real elect.
package run_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/markdown"
)

const (
	pages = "../../docs/run"
	index = "README.md"
)

var inOrder = []string{"When to choose it", "Steps", "See that it works", "Stop, crash, loss of the store", "Upgrade", "What to alert on"}

func read(t *testing.T) map[string]markdown.Page {
	t.Helper()
	files, err := filepath.Glob(pages + "/*.md")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	all := map[string]markdown.Page{}
	for _, file := range files {
		page, err := markdown.Read(file)
		require.NoError(t, err)
		all[filepath.Base(file)] = page
	}
	return all
}

func TestEveryPageSaysTheSameThingsInTheSameOrder(t *testing.T) {
	all := read(t)
	for name, page := range all {
		if name == index {
			continue
		}
		require.Contains(t, all[index].Text, "("+name+")", "the index does not have it")
		require.GreaterOrEqual(t, len(page.Headings), len(inOrder), name)
		require.Equal(t, inOrder, page.Headings[:len(inOrder)], name)
		for _, block := range page.Blocks {
			require.Contains(t, []string{"sh", "console", "go"}, block.Lang, "%s: only these are run", block.At)
		}
	}
}

// What the pages call an alert or a metric is one.
func TestEveryAlertOnAPageExists(t *testing.T) {
	rules, err := os.ReadFile("../../deploy/prometheus/alerts.yml")
	require.NoError(t, err)
	metrics, err := os.ReadFile("../../docs/observability.md")
	require.NoError(t, err)
	alerts := 0
	for name, page := range read(t) {
		for _, m := range regexp.MustCompile("`([A-Z][a-z]+[A-Z][A-Za-z]+)`").FindAllStringSubmatch(page.Section("What to alert on"), -1) {
			alerts++
			require.Contains(t, string(rules), "alert: "+m[1]+"\n", name)
		}
		for _, m := range regexp.MustCompile("election_[a-z_]+").FindAllString(page.Text, -1) {
			require.Contains(t, string(metrics), "| `"+m+"` |", name)
		}
	}
	require.NotZero(t, alerts)
}

func TestTheLibraryPageHasTheExample(t *testing.T) {
	example, err := os.ReadFile("../../examples/service/main.go")
	require.NoError(t, err)
	page := read(t)["library.md"]
	require.Contains(t, page.Text, "```go\n"+string(example)+"```\n")
}

// A script is a page whose blocks are run one after the other.
type script struct {
	*testing.T
	page   markdown.Page
	blocks []markdown.Block // that were not run yet
	last   markdown.Block   // that was
	hints  []string         // what is said to go wrong, and has not yet
}

var hint = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")

// play opens a page. When the test ends, all of it has been run.
func play(t *testing.T, name string) *script {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("hosts of a test's own need root")
	}
	page, err := markdown.Read(filepath.Join(pages, name))
	require.NoError(t, err)
	s := &script{T: t, page: page, blocks: page.Blocks}
	_, table, _ := strings.Cut(page.Section("See that it works"), "says | then |\n")
	for _, m := range hint.FindAllStringSubmatch(table, -1) {
		s.hints = append(s.hints, m[1])
	}
	t.Cleanup(func() {
		if !t.Failed() && !t.Skipped() {
			require.Empty(t, s.blocks, "blocks of %s that were not run", name)
			require.Empty(t, s.hints, "%s: errors that were not seen", name)
		}
	})
	return s
}

// next is the page's next block, which has to be of that language.
func (s *script) next(lang string) string {
	s.Helper()
	require.NotEmpty(s, s.blocks, "%s ends too soon", s.page.Path)
	s.last, s.blocks = s.blocks[0], s.blocks[1:]
	require.Equal(s, lang, s.last.Lang, s.last.At)
	return s.last.Text
}

// console runs the commands of the next block, each of which has to print what is below it.
func (s *script) console(says func(string) (int, string)) {
	s.Helper()
	s.next("console")
	for command, want := range s.last.Commands() {
		_, out := says(command)
		require.Empty(s, markdown.Unlike(want, out), "%s: %s: no line is like it in\n%s", s.last.At, command, out)
	}
}

// long leaves a page to make test/all.
func long(t *testing.T, why string) {
	t.Helper()
	if testing.Short() {
		t.Skip(why)
	}
}

// told is what a mistake of a newcomer has led to, of which the page has to say what to do.
func (s *script) told(out string) {
	s.Helper()
	for i, text := range s.hints {
		if regexp.MustCompile(strings.ReplaceAll(regexp.QuoteMeta(text), "…", ".*")).MatchString(out) {
			s.hints = slices.Delete(slices.Clone(s.hints), i, i+1)
			return
		}
	}
	require.Fail(s, "the page does not know this", "%s: %q in\n%s", s.page.Path, s.hints, out)
}
