//go:build unix

package testenv

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/electkv/election/internal/testenv/install"
)

// StartPrometheus starts a Prometheus of the test's own. The config is its configuration file,
// in YAML. The args are flags as on its command line ("--query.lookback-delta=1m").
func StartPrometheus(t testing.TB, config string, args ...string) *Server {
	t.Helper()
	return startOwn(t, func() (*Server, error) { return newPrometheus(config, args...) })
}

func newPrometheus(config string, args ...string) (*Server, error) {
	path, err := install.Prometheus()
	if err != nil {
		return nil, err
	}
	s, err := newServer("prometheus", path, prometheusHealthy)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(s.dir, "prometheus.yml")
	s.args = append([]string{
		"--config.file=" + file,
		"--storage.tsdb.path=" + s.dataDir(),
		"--web.listen-address=" + s.Addr(),
		"--log.level=warn",
	}, args...)
	return s, os.WriteFile(file, []byte(config), 0o644)
}

// prometheusHealthy succeeds once Prometheus answers queries, which it refuses before.
func prometheusHealthy(ctx context.Context, addr string) error {
	return getJSON(ctx, "http://"+addr+"/api/v1/status/buildinfo", new(struct{}))
}
