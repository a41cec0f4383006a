//go:build unix

package observe_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A board is what a file for Grafana has, as far as it is checked here.
type board struct {
	UID        string
	Title      string
	Templating struct {
		List []struct{ Name, Type, Query string }
	}
	Panels []panel
}

type panel struct {
	ID         int
	Type       string
	Title      string
	GridPos    struct{ H, W, X, Y int }
	Datasource struct{ UID string }
	Targets    []struct {
		RefID        string
		Expr         string
		LegendFormat string
		Datasource   struct{ UID string }
	}
}

func readBoard(t *testing.T) board {
	t.Helper()
	text, err := os.ReadFile(dashboard)
	require.NoError(t, err)
	var b board
	require.NoError(t, json.Unmarshal(text, &b))
	require.NotEmpty(t, b.UID)
	require.Greater(t, len(b.Panels), 10)
	return b
}

func TestPanelsOfTheDashboardHaveARoomEach(t *testing.T) {
	const columns = 24
	taken, ids := make(map[[2]int]string), make(map[int]bool)
	for _, p := range readBoard(t).Panels {
		require.NotEmpty(t, p.Title)
		require.False(t, ids[p.ID], "%s: another panel has its id", p.Title)
		ids[p.ID] = true
		require.LessOrEqual(t, p.GridPos.X+p.GridPos.W, columns, p.Title)
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				require.Empty(t, taken[[2]int{x, y}], "%s covers it", p.Title)
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			require.Empty(t, p.Targets, p.Title)
			continue
		}
		require.NotEmpty(t, p.Targets, p.Title)
		require.Equal(t, "${datasource}", p.Datasource.UID, p.Title)
		refs := make(map[string]bool)
		for _, q := range p.Targets {
			require.Equal(t, "${datasource}", q.Datasource.UID, p.Title)
			require.NotEmpty(t, q.LegendFormat, p.Title)
			require.False(t, refs[q.RefID], p.Title)
			refs[q.RefID] = true
		}
	}
}

// query returns a query of the dashboard as Grafana would send it.
func (b *board) query(t *testing.T, text string) string {
	t.Helper()
	values := strings.NewReplacer("$__rate_interval", "5s", "$__range", "2m", "$job", "app", "$election", "billing")
	query := values.Replace(text)
	require.NotContains(t, query, "$", "a variable that is not set here")
	return query
}
