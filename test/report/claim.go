package main

import (
	"errors"
	"fmt"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// A section is a part of the package documentation, under its heading.
type section struct {
	Title string
	Text  string // as a quotation in Markdown
}

// claims returns what the package documentation promises, and on what
// conditions: word for word.
func claims(file string) ([]section, error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly|parser.ParseComments)
	if err != nil {
		return nil, err
	}
	if parsed.Doc == nil {
		return nil, fmt.Errorf("%s: no package documentation", file)
	}
	doc := new(comment.Parser).Parse(parsed.Doc.Text())
	found := []section{}
	for _, title := range []string{"What is promised", "What is assumed", "Trust"} {
		text, err := quote(doc, title)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		found = append(found, section{title, text})
	}
	return found, nil
}

// quote returns what stands under a heading.
func quote(doc *comment.Doc, title string) (string, error) {
	heading := func(b comment.Block) bool { _, ok := b.(*comment.Heading); return ok }
	begin := slices.IndexFunc(doc.Content, func(b comment.Block) bool {
		h, ok := b.(*comment.Heading)
		return ok && len(h.Text) == 1 && h.Text[0] == comment.Plain(title)
	})
	if begin < 0 {
		return "", fmt.Errorf("no heading %q", title)
	}
	blocks := doc.Content[begin+1:]
	if end := slices.IndexFunc(blocks, heading); end >= 0 {
		blocks = blocks[:end]
	}
	if len(blocks) == 0 {
		return "", errors.New("nothing under " + title)
	}
	text := string(new(comment.Printer).Markdown(&comment.Doc{Content: blocks}))
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight("> "+line, " ")
	}
	return strings.Join(lines, "\n"), nil
}
