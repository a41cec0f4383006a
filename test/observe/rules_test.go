//go:build unix

package observe_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/electkv/election/internal/testenv/install"
)

const (
	alerts    = "../../deploy/prometheus/alerts.yml"
	dashboard = "../../deploy/grafana/elections.json"
)

func TestAlertsFireWhenTheyShouldAndOnlyThen(t *testing.T) {
	promtool, err := install.Promtool()
	require.NoError(t, err)
	for _, args := range [][]string{
		{"check", "rules", "alerts.yml"},
		{"test", "rules", "alerts_test.yml"},
	} {
		tool := exec.CommandContext(t.Context(), promtool, args...)
		tool.Dir = filepath.Dir(alerts)
		out, err := tool.CombinedOutput()
		require.NoError(t, err, "promtool %v: %s", args, out)
	}
}

// A rule is an alert.
type rule struct {
	Alert       string
	Expr        string
	Labels      map[string]string
	Annotations map[string]string
}

// rules returns the alerts that are delivered.
func rules(t *testing.T) []rule {
	t.Helper()
	text, err := os.ReadFile(alerts)
	require.NoError(t, err)
	var file struct {
		Groups []struct{ Rules []rule }
	}
	require.NoError(t, yaml.Unmarshal(text, &file))
	require.Len(t, file.Groups, 1)
	return file.Groups[0].Rules
}

func TestEveryAlertIsTestedAndSaysWhatToDo(t *testing.T) {
	tests, err := os.ReadFile(filepath.Join(filepath.Dir(alerts), "alerts_test.yml"))
	require.NoError(t, err)
	names := make(map[string]bool)
	for _, r := range rules(t) {
		names[r.Alert] = true
		require.Regexp(t, `(?m)alertname: `+r.Alert+`$`, string(tests), "a test in which it fires")
		require.Contains(t, []string{"critical", "warning"}, r.Labels["severity"], r.Alert)
		require.NotEmpty(t, r.Annotations["summary"], r.Alert)
		require.NotEmpty(t, r.Annotations["description"], r.Alert)
	}
	require.Len(t, names, 5)
}

// metric matches the names of our metrics in queries.
var metric = regexp.MustCompile(`\belection_[a-z_]+`)
