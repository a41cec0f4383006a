package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// event matches a row of the table of events.
var event = regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|")

// Programs go by the names of events, so each log record has one, and no other is documented.
func TestEveryLogRecordHasAnEventThatIsDocumented(t *testing.T) {
	logged, documented := map[string]bool{}, map[string]bool{}
	_, table, _ := strings.Cut(string(read(t, filepath.Join(root, "docs/observability.md"))), "\n## Logs\n")
	for _, m := range event.FindAllStringSubmatch(table, -1) {
		documented[m[1]] = true
	}
	sources, err := filepath.Glob(filepath.Join(root, "*.go"))
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
				texts := literals(call.Args)
				for i, text := range texts {
					if text == "event" && i+1 < len(texts) && texts[i+1] != "" {
						logged[texts[i+1]] = true
					}
				}
				if name := logs(call); name != "" {
					require.Contains(t, texts, "event", "%s: %s", source, name)
				}
				if fn, ok := call.Fun.(*ast.SelectorExpr); ok && fn.Sel.Name == "fault" {
					logged[texts[1]] = true
				}
			}
			return true
		})
	}
	require.Equal(t, documented, logged)
}

// logs returns the name of the method if a call logs something.
func logs(call *ast.CallExpr) string {
	fn, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	switch name := strings.TrimSuffix(fn.Sel.Name, "Context"); name {
	case "Debug", "Info", "Warn", "Error":
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
