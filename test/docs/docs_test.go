// Package docs_test holds the documents to what they promise: "make check" runs
// it. That every exported name is documented is the linter's to see.
package docs_test

import (
	"bytes"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../.."

func TestEveryBackendSaysTheSameThingsInTheSameOrder(t *testing.T) {
	files := matches(t, "backends/*/doc.go")
	require.Len(t, files, len(folders(t, "backends")), "a backend has no doc.go")
	for _, file := range files {
		require.Equal(t, []string{"Guarantees", "Records", "Requirements", "Cost"}, headings(t, file), file)
	}
}

func TestEveryExampleIsShort(t *testing.T) {
	files := matches(t, "examples/*/*.go")
	require.NotEmpty(t, files)
	for _, file := range files {
		require.Less(t, bytes.Count(read(t, file), []byte("\n")), 80, "%s: lines", file)
	}
}

// Supervisors stop a service by SIGTERM. One that does not heed it keeps its successor
// out for a TTL.
func TestEveryProgramThatIsShownStopsOnSIGTERM(t *testing.T) {
	programs := slices.Concat(matches(t, "examples/*/main.go"), matches(t, "docs/*/*.md"), matches(t, "README.md"))
	shown := 0
	for _, file := range programs {
		for _, text := range strings.Split(string(read(t, file)), "func main() {\n")[1:] {
			shown++
			main, _, _ := strings.Cut(text, "\n}\n")
			require.Contains(t, main, "os.Interrupt, syscall.SIGTERM)", file)
		}
	}
	require.Greater(t, shown, 10)
}

func TestEveryMakeTargetSaysWhatItDoes(t *testing.T) {
	targets := regexp.MustCompile(`(?m)^([a-z][a-z/-]*):`).FindAllSubmatch(read(t, root+"/Makefile"), -1)
	require.NotEmpty(t, targets)
	for _, target := range targets {
		name := string(target[1])
		require.Regexp(t, `(?m)^`+name+`:.* ## \S`, string(read(t, root+"/Makefile")), "make %s", name)
	}
}

// A decision record is a page: what was to be decided, what was, what follows.
func TestDecisionsAreNumberedAndOfOneForm(t *testing.T) {
	files := matches(t, "docs/adr/*.md")
	require.NotEmpty(t, files)
	for i, file := range files {
		require.Regexp(t, `^\d{4}-[a-z0-9-]+\.md$`, filepath.Base(file))
		require.Equal(t, i+1, number(t, file), "%s: the numbers have no gaps", file)
		text := string(read(t, file))
		require.Regexp(t, `\A# \d+\. \S`, text, file)
		require.Regexp(t, `(?s)\n## Context\n.*\n## Decision\n.*\n## Consequences\n`, text, file)
		require.LessOrEqual(t, strings.Count(text, "\n"), 60, "%s: a decision is one page", file)
	}
}

func TestLinksLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)#\s]*)(?:#([^)\s]+))?\)`)
	found := 0
	for _, file := range documents(t) {
		for _, m := range link.FindAllSubmatch(read(t, file), -1) {
			target, anchor := string(m[1]), string(m[2])
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			path := file
			if target != "" {
				path = filepath.Join(filepath.Dir(file), target)
			}
			_, err := os.Stat(path)
			require.NoError(t, err, "%s links to %s", file, target)
			if anchor != "" && strings.HasSuffix(path, ".md") {
				found++
				require.Contains(t, anchors(t, path), anchor, "%s links to %s#%s", file, target, anchor)
			}
		}
	}
	require.NotZero(t, found)
}

// anchors returns the names by which links reach the headings of a document, as GitHub makes them.
func anchors(t *testing.T, path string) []string {
	t.Helper()
	text := regexp.MustCompile("(?ms)^```.*?^```").ReplaceAllString(string(read(t, path)), "")
	text = regexp.MustCompile(`\]\([^)]*\)`).ReplaceAllString(text, "]") // a link counts by its text
	names := []string{}
	for _, m := range regexp.MustCompile(`(?m)^#+ +(.*?) *$`).FindAllStringSubmatch(text, -1) {
		name := regexp.MustCompile(`[^\p{L}\p{M}\p{N}_\- ]`).ReplaceAllString(strings.ToLower(m[1]), "")
		names = append(names, strings.ReplaceAll(name, " ", "-"))
	}
	return names
}

// ARCHITECTURE.md says which tests hold the invariants: they exist.
func TestTestsThatDocumentsNameExist(t *testing.T) {
	there := make(map[string]bool)
	require.NoError(t, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, "_test.go") {
			for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllSubmatch(read(t, path), -1) {
				there[string(m[1])] = true
			}
		}
		return err
	}))
	named := 0
	for _, file := range documents(t) {
		for _, m := range regexp.MustCompile("`(Test[A-Z]\\w+)`").FindAllSubmatch(read(t, file), -1) {
			named++
			require.True(t, there[string(m[1])], "%s names %s", file, m[1])
		}
	}
	require.Greater(t, named, 10)
}

// headings returns the headings of the package comment in file.
func headings(t *testing.T, file string) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly|parser.ParseComments)
	require.NoError(t, err)
	require.NotNil(t, f.Doc, "%s: no package comment", file)
	var found []string
	for _, block := range new(comment.Parser).Parse(f.Doc.Text()).Content {
		if h, ok := block.(*comment.Heading); ok {
			found = append(found, string(h.Text[0].(comment.Plain)))
		}
	}
	return found
}

// documents returns the Markdown files of the repository.
func documents(t *testing.T) []string {
	t.Helper()
	var files []string
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == ".git" {
			return fs.SkipDir
		}
		if err == nil && filepath.Ext(path) == ".md" {
			files = append(files, path)
		}
		return err
	}))
	require.NotEmpty(t, files)
	return files
}

func folders(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(root, dir))
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names
}

func matches(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, pattern))
	require.NoError(t, err)
	return files
}

func number(t *testing.T, file string) int {
	t.Helper()
	n := 0
	for _, digit := range filepath.Base(file)[:4] {
		n = 10*n + int(digit-'0')
	}
	return n
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	return b
}
