package docs_test

import (
	"go/ast"
	"go/doc"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const module = "github.com/electkv/election"

// A link in a doc comment that leads nowhere is shown as text in brackets.
func TestLinksInDocCommentsLeadSomewhere(t *testing.T) {
	t.Parallel()
	unresolved := regexp.MustCompile(`(^|[^\w\])])\[\*?[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*){0,2}\]`)
	packages := documented(t)
	require.Greater(t, len(packages), 30)
	seen := 0
	for _, path := range slices.Sorted(maps.Keys(packages)) {
		pkg := packages[path]
		for where, text := range texts(pkg) {
			parsed := pkg.Parser().Parse(text)
			for _, link := range links(parsed) {
				seen++
				target := packages[link.ImportPath]
				if link.ImportPath == "" {
					target = pkg
				}
				if target != nil && link.Name != "" {
					assert.True(t, target.Parser().LookupSym(link.Recv, link.Name), "%s: the comment of %s links to %s.%s", path, where, link.ImportPath, link.Name)
				}
			}
			for _, plain := range plains(parsed) {
				assert.NotRegexp(t, unresolved, plain, "%s: the comment of %s", path, where)
			}
		}
	}
	require.Greater(t, seen, 100)
}

// documented returns the packages of the repository, by their import paths.
func documented(t *testing.T) map[string]*doc.Package {
	t.Helper()
	files := make(map[string][]*ast.File)
	set := token.NewFileSet()
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch name := filepath.Base(path); {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "dist"):
			return fs.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(set, path, text, parser.ParseComments)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		files[filepath.ToSlash(filepath.Join(module, dir))] = append(files[filepath.ToSlash(filepath.Join(module, dir))], file)
		return err
	}))
	packages := make(map[string]*doc.Package, len(files))
	for path, all := range files {
		pkg, err := doc.NewFromFiles(set, all, path, doc.AllDecls)
		require.NoError(t, err)
		packages[path] = pkg
	}
	return packages
}

// texts returns the comments of a package's declarations, by what they are of.
func texts(p *doc.Package) map[string]string {
	all := map[string]string{"the package": p.Doc}
	funcs := func(of []*doc.Func) {
		for _, f := range of {
			all[f.Recv+"."+f.Name] = f.Doc
		}
	}
	values := func(of []*doc.Value) {
		for _, v := range of {
			all[v.Names[0]] = v.Doc
		}
	}
	funcs(p.Funcs)
	values(p.Consts)
	values(p.Vars)
	for _, typ := range p.Types {
		all[typ.Name] = typ.Doc
		funcs(typ.Funcs)
		funcs(typ.Methods)
		values(typ.Consts)
		values(typ.Vars)
	}
	return all
}

// links returns the links to declarations in a comment.
func links(d *comment.Doc) (all []*comment.DocLink) {
	each(d, func(t comment.Text) {
		if l, ok := t.(*comment.DocLink); ok {
			all = append(all, l)
		}
	})
	return all
}

// plains returns the text of a comment that is no link and no code.
func plains(d *comment.Doc) (all []string) {
	each(d, func(t comment.Text) {
		if p, ok := t.(comment.Plain); ok {
			all = append(all, string(p))
		}
	})
	return all
}

// each calls do for all text of a comment that is not code.
func each(d *comment.Doc, do func(comment.Text)) {
	all := func(texts []comment.Text) {
		for _, t := range texts {
			do(t)
		}
	}
	var of func([]comment.Block)
	of = func(blocks []comment.Block) {
		for _, b := range blocks {
			switch b := b.(type) {
			case *comment.Heading:
				all(b.Text)
			case *comment.Paragraph:
				all(b.Text)
			case *comment.List:
				for _, item := range b.Items {
					of(item.Content)
				}
			}
		}
	}
	of(d.Content)
}
