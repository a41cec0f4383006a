//go:build linux

package migrate

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/electkv/election/internal/markdown"
)

const (
	docs   = "../../../docs/migrate"
	readme = "README" // the index, which has no rollout of its own

	// A page is short, and so is each program on it: in lines.
	longestPage, longestProgram = 110, 75
)

// A page is one of docs/migrate.
type page struct {
	markdown.Page
	name string // of its file, without the ending
}

// readPages returns the pages by their names.
func readPages(t *testing.T) map[string]page {
	t.Helper()
	files, err := filepath.Glob(docs + "/*.md")
	require.NoError(t, err)
	pages := map[string]page{}
	for _, file := range files {
		p := page{name: strings.TrimSuffix(filepath.Base(file), ".md")}
		p.Page, err = markdown.Read(file)
		require.NoError(t, err)
		pages[p.name] = p
	}
	require.Contains(t, pages, readme)
	return pages
}

// A program is a block that is run: a program in Go, or a command.
type program struct {
	markdown.Block
	id string // and the name of its executable, if it is in Go
}

// programs returns those that stand under a heading.
func (p page) programs(heading, lang string) []program {
	var found []program
	for _, b := range p.Blocks {
		if b.Heading == heading && b.Lang == lang {
			id := fmt.Sprintf("%s-%s%d", p.name, strings.ToLower(heading), len(found)+1)
			found = append(found, program{b, id})
		}
	}
	return found
}

// The headings of programs. Between is for pages of locks that cannot share a key.
const (
	before  = "Before"
	between = "Between"
	after   = "After"
)

const (
	inGo    = "go"
	inShell = "sh"
	console = "console"
)

var inOrder = []string{"What the old lock writes", before, after, "Rollout", "What to watch", "Back", "What is better, and what is not"}

func TestEveryPageSaysTheSameThingsInTheSameOrder(t *testing.T) {
	for _, p := range readPages(t) {
		if p.name == readme {
			continue
		}
		var found []string
		for _, h := range p.Headings {
			if h != between {
				found = append(found, h)
			}
		}
		require.Equal(t, inOrder, found, p.name)
		prose := strings.Count(p.Text, "\n")
		for _, b := range p.Blocks {
			lines := strings.Count(b.Text, "\n")
			require.LessOrEqual(t, lines, longestProgram, "%s: lines", b.At)
			prose -= lines
		}
		require.LessOrEqual(t, prose, longestPage, "%s: lines beside the programs", p.name)
	}
}

// What is not run may rot: nothing on a page is code but what is run, a transcript
// of commands, or plain text.
func TestEveryPieceOfCodeIsRun(t *testing.T) {
	for _, p := range readPages(t) {
		for _, b := range p.Blocks {
			switch b.Lang {
			case inGo:
				require.Regexp(t, `\Apackage main\n`, b.Text, "%s: want a whole program", b.At)
				require.Contains(t, []string{before, between, after}, b.Heading, "%s: under this heading nothing is run", b.At)
			case inShell:
				require.Contains(t, []string{before, after}, b.Heading, "%s: under this heading nothing is run", b.At)
			case console:
				require.Regexp(t, `\A\$ `, b.Text, "%s: want a command", b.At)
			default:
				require.Equal(t, "text", b.Lang, b.At)
			}
		}
	}
}

func TestEveryPageIsPlayedAndInTheIndex(t *testing.T) {
	pages := readPages(t)
	for name, p := range pages {
		if name == readme {
			continue
		}
		require.Contains(t, rollouts(), name, "no rollout of the page is played")
		require.Contains(t, pages[readme].Text, "("+name+".md)", "the index does not have it")
		require.NotEmpty(t, append(p.programs(before, inGo), p.programs(before, inShell)...), name)
	}
	for name := range rollouts() {
		require.Contains(t, pages, name, "there is no such page")
	}
}

var volatile = regexp.MustCompile(`[0-9]+`)

// general returns a line without what differs from run to run.
func general(line string) string {
	return volatile.ReplaceAllString(strings.Join(strings.Fields(line), " "), "#")
}
