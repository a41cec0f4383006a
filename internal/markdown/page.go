// Package markdown reads what tests run of the documents: the blocks between fences.
package markdown

import (
	"fmt"
	"iter"
	"os"
	"regexp"
	"strings"
)

// A Page is a document.
type Page struct {
	Path     string
	Text     string
	Headings []string // of the second level
	Blocks   []Block
}

// A Block is what stands between two fences.
type Block struct {
	Heading string // of the second level, under which it stands; empty before the first one
	Lang    string
	Text    string
	At      string // file:line of its first line
}

// Read reads a document. A fence that is not closed is an error.
func Read(path string) (Page, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Page{}, err
	}
	p := Page{Path: path, Text: string(text)}
	var open *Block
	heading, indent := "", ""
	for i, line := range strings.SplitAfter(p.Text, "\n") {
		lang, fence := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case fence && open == nil:
			open = &Block{Heading: heading, Lang: lang, At: fmt.Sprintf("%s:%d", path, i+2)}
			indent = line[:strings.Index(line, "`")]
		case fence:
			p.Blocks = append(p.Blocks, *open)
			open = nil
		case open != nil:
			open.Text += strings.TrimPrefix(line, indent)
		case strings.HasPrefix(line, "## "):
			heading = strings.TrimSpace(line[3:])
			p.Headings = append(p.Headings, heading)
		}
	}
	if open != nil {
		return Page{}, fmt.Errorf("%s: the fence is not closed", open.At)
	}
	return p, nil
}

// Section returns the text under a heading of the second level, which may be empty.
func (p Page) Section(heading string) string {
	_, text, _ := strings.Cut(p.Text, "\n## "+heading+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

// Commands returns the commands of a transcript, which stand behind "$ ", each with what is printed below it.
func (b Block) Commands() iter.Seq2[string, []string] {
	return func(yield func(string, []string) bool) {
		for part := range strings.SplitSeq(strings.TrimPrefix(b.Text, "$ "), "\n$ ") {
			command, printed, _ := strings.Cut(part, "\n")
			if !yield(command, strings.Split(strings.TrimSpace(printed), "\n")) {
				return
			}
		}
	}
}

// Unlike returns the first of some lines of a document that no line of out is like: the same, but for
// numbers, ids of containers, names of hosts, and what … stands for. It is empty if there is none.
func Unlike(lines []string, out string) string {
	for _, line := range lines {
		if !like(line).MatchString(out) {
			return line
		}
	}
	return ""
}

var (
	host     = regexp.MustCompile(`\b[abc]((\\\.example)?-)`)
	volatile = regexp.MustCompile(`\b[0-9a-f]{12}\b|[0-9]+(\\\.[0-9]+)?`)
)

func like(line string) *regexp.Regexp {
	words := strings.Fields(line)
	for i, word := range words {
		word = host.ReplaceAllString(regexp.QuoteMeta(word), "[abc]$1")
		word = volatile.ReplaceAllStringFunc(word, func(found string) string {
			switch {
			case strings.Contains(found, "."): // it may be a whole number as well
				return `[0-9]+(\.[0-9]+)?`
			case len(found) == 12:
				return "[0-9a-f]{12}"
			}
			return "[0-9]+"
		})
		words[i] = strings.ReplaceAll(word, "…", ".*")
	}
	return regexp.MustCompile(`(?m)^[ \t]*` + strings.Join(words, `[ \t]+`) + `[ \t]*$`)
}
