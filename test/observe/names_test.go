//go:build unix

package observe_test

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/observe/prom"
)

// described returns the names of the metrics.
func described() map[string]bool {
	ch := make(chan *prometheus.Desc, 100)
	electionprom.New(nil).Describe(ch)
	close(ch)
	names := make(map[string]bool)
	for d := range ch {
		names[regexp.MustCompile(`fqName: "([a-z_]+)"`).FindStringSubmatch(d.String())[1]] = true
	}
	return names
}

func TestAlertsAndTheDashboardNameMetricsThatThereAre(t *testing.T) {
	var queries []string
	for _, r := range rules(t) {
		queries = append(queries, r.Expr)
	}
	b := readBoard(t)
	for _, p := range b.Panels {
		for _, q := range p.Targets {
			queries = append(queries, q.Expr)
		}
	}
	names, used := described(), make(map[string]bool)
	for _, query := range queries {
		for _, name := range metric.FindAllString(query, -1) {
			name = strings.TrimSuffix(name, "_bucket")
			require.True(t, names[name], "%s in %s", name, query)
			used[name] = true
		}
	}
	require.Equal(t, names, used, "there is no metric that neither an alert nor the dashboard shows")
}

// gathered returns the metrics of a process that has led once.
func gathered(t *testing.T) []*dto.MetricFamily {
	t.Helper()
	metrics, registry := electionprom.New(nil), prometheus.NewRegistry()
	require.NoError(t, registry.Register(metrics))
	c, err := election.New(memkv.New(), "billing", &election.Options{Hooks: metrics.Hooks()})
	require.NoError(t, err)
	require.NoError(t, c.Run(t.Context(), func(context.Context, *election.Term) error { return nil }))
	families, err := registry.Gather()
	require.NoError(t, err)
	return families
}

// The table has the help of each metric, as a scrape has it.
func TestTheMetricsAreDocumented(t *testing.T) {
	var want strings.Builder
	for _, f := range gathered(t) {
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, "`"+l.GetName()+"`")
		}
		if len(labels) == 0 {
			labels = []string{"–"}
		}
		kind := strings.ToLower(f.GetType().String())
		fmt.Fprintf(&want, "| `%s` | %s | %s | %s |\n", f.GetName(), kind, strings.Join(labels, ", "), f.GetHelp())
	}
	require.Equal(t, len(described()), strings.Count(want.String(), "\n"))
	text, err := os.ReadFile("../../docs/observability.md")
	require.NoError(t, err)
	got := regexp.MustCompile("(?m)^\\| `election_.*\n").FindAllString(string(text), -1)
	require.Equal(t, want.String(), strings.Join(got, ""))
}

// What is counted has a series from the beginning, so that a rate sees the first of it.
func TestEveryReasonAndOperationIsZeroBeforeItIsCounted(t *testing.T) {
	there := make(map[string]bool)
	for _, f := range gathered(t) {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				there[f.GetName()+" "+l.GetValue()] = true
			}
		}
	}
	reasons, ops := constants(t, "Reason"), constants(t, "Op")
	require.Greater(t, len(reasons), 5)
	require.Greater(t, len(ops), 5)
	for _, reason := range reasons {
		require.True(t, there["election_terms_ended_total "+reason], reason)
		require.True(t, there["election_drain_overruns_total "+reason], reason)
	}
	for _, op := range ops {
		require.True(t, there["election_store_errors_total "+op], op)
	}
}

// constants returns the values of a type's constants in hooks.go.
func constants(t *testing.T, of string) (values []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../hooks.go", nil, 0)
	require.NoError(t, err)
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if name, ok := spec.Type.(*ast.Ident); ok && name.Name == of {
			value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			require.NoError(t, err)
			values = append(values, value)
		}
		return true
	})
	return values
}
