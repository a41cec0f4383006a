package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// event matches a row of a table of events.
var event = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|")

// Programs go by the names of events, so each log record has one, and no other is documented.
func TestEveryLogRecordHasAnEventThatIsDocumented(t *testing.T) {
	_, logs, _ := strings.Cut(string(read(t, filepath.Join(root, "docs/observability.md"))), "\n## Logs\n")
	elections, groups, ok := strings.Cut(logs, "\n| event of groups |")
	require.True(t, ok)
	require.Equal(t, events(elections), logged(t, "."))
	require.Equal(t, events(groups), logged(t, "group", "internal/wire"))
}

// events returns those that the rows of a table have.
func events(table string) map[string]bool {
	documented := map[string]bool{}
	for _, m := range event.FindAllStringSubmatch(table, -1) {
		documented[m[1]] = true
	}
	return documented
}

// logged returns the events of all log records of some packages, each of which has one.
func logged(t *testing.T, folders ...string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, folder := range folders {
		sources, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
		require.NoError(t, err)
		require.NotEmpty(t, sources)
		for _, source := range sources {
			if strings.HasSuffix(source, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), source, nil, 0)
			require.NoError(t, err)
			ast.Inspect(file, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					if name := logs(call); name != "" {
						require.True(t, named(call), "%s: %s", source, name)
					}
					note(found, call)
				}
				return true
			})
		}
	}
	return found
}

// note notes the event that a call names.
func note(found map[string]bool, call *ast.CallExpr) {
	texts := literals(call.Args)
	for i, text := range texts {
		if text == "event" && i+1 < len(texts) && texts[i+1] != "" {
			found[texts[i+1]] = true
		}
	}
	if fn, ok := call.Fun.(*ast.SelectorExpr); ok && (fn.Sel.Name == "fault" || fn.Sel.Name == "complain") {
		found[texts[1]] = true
	}
}

// named reports whether a call has the word event among its arguments, or among theirs.
func named(call *ast.CallExpr) (yes bool) {
	ast.Inspect(call, func(n ast.Node) bool {
		inner, ok := n.(*ast.CallExpr)
		yes = yes || ok && slices.Contains(literals(inner.Args), "event")
		return true
	})
	return yes
}

// logs returns the name of the method if a call logs something.
func logs(call *ast.CallExpr) string {
	fn, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	switch name := strings.TrimSuffix(fn.Sel.Name, "Context"); name {
	case "Debug", "Info", "Warn", "Error", "LogAttrs":
		if len(call.Args) > 0 { // else it is an error's text
			return name
		}
	}
	return ""
}

// literals returns the texts of arguments, empty for those that are no literals.
func literals(args []ast.Expr) []string {
	texts := make([]string, len(args))
	for i, arg := range args {
		if lit, ok := arg.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			texts[i], _ = strconv.Unquote(lit.Value)
		}
	}
	return texts
}
