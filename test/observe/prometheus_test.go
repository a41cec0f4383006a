//go:build unix

// Package observe_test holds what is delivered for Prometheus and Grafana against the metrics of real
// elections, on a real Prometheus.
package observe_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/require"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/internal/testenv"
	"github.com/electkv/election/kv"
	"github.com/electkv/election/kv/kvfault"
	"github.com/electkv/election/observe/prom"
)

// A process takes part in the election, and is scraped.
type process struct {
	candidate *election.Candidate
	addr      string
	resign    chan struct{}
}

// ttl is long enough that a busy machine does not keep a leader from a refresh.
const ttl = 8 * time.Second

// start starts a process whose work takes longer to stop than the margin of a tenth of the TTL.
func start(t *testing.T, store kv.Store, id string, native bool) *process {
	t.Helper()
	metrics, registry := electionprom.New(&electionprom.Options{NativeHistograms: native}), prometheus.NewRegistry()
	require.NoError(t, registry.Register(metrics))
	server := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	t.Cleanup(server.Close)
	c, err := election.New(store, "billing", &election.Options{ID: id, TTL: ttl, Hooks: metrics.Hooks()})
	require.NoError(t, err)
	return &process{c, server.Listener.Addr().String(), make(chan struct{})}
}

// run has the process campaign until the test is over.
func (p *process) run(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		_ = p.candidate.Run(ctx, func(ctx context.Context, term *election.Term) error {
			select {
			case <-p.resign:
				return term.Resign(ctx)
			case <-ctx.Done():
			}
			time.Sleep(ttl / 4)
			return nil
		})
	})
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
}

// A record is what a Prometheus has recorded.
type record struct {
	*testing.T
	server     *testenv.Server
	began, end time.Time
}

// in returns the record for a part of the test.
func (r *record) in(t *testing.T) *record { return &record{t, r.server, r.began, r.end} }

// A result is one series of an answer.
type result struct {
	Metric map[string]string
	Values [][2]any // a time and a value, as text
}

// get asks the API for data.
func (r *record) get(path string, params url.Values, data any) {
	r.Helper()
	target := "http://" + r.server.Addr() + "/api/v1/" + path + "?" + params.Encode()
	request, err := http.NewRequestWithContext(r.Context(), http.MethodGet, target, nil)
	require.NoError(r, err)
	answer, err := http.DefaultClient.Do(request)
	require.NoError(r, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(r, err)
	require.Equal(r, http.StatusOK, answer.StatusCode, "%s %v: %s", path, params, text)
	require.NoError(r, json.Unmarshal(text, &struct{ Data any }{data}))
}

// await waits until a query has an answer.
func (r *record) await(query string, args ...any) {
	r.Helper()
	require.Eventually(r, func() bool {
		var data struct{ Result []any }
		r.get("query", url.Values{"query": {fmt.Sprintf(query, args...)}}, &data)
		return len(data.Result) > 0
	}, time.Minute, 50*time.Millisecond, query, args)
}

// series returns the labels of the series of a query that have a number at some time of the record.
func (r *record) series(query string) (labels []map[string]string) {
	r.Helper()
	var data struct{ Result []result }
	r.get("query_range", url.Values{
		"query": {query}, "step": {"0.25"},
		"start": {r.began.Format(time.RFC3339Nano)}, "end": {r.end.Format(time.RFC3339Nano)},
	}, &data)
	for _, s := range data.Result {
		if slices.ContainsFunc(s.Values, func(v [2]any) bool {
			number, err := strconv.ParseFloat(v[1].(string), 64)
			return err == nil && !math.IsNaN(number) && !math.IsInf(number, 0)
		}) {
			labels = append(labels, s.Metric)
		}
	}
	return labels
}

// recorded has a Prometheus record a hand-over, a loss and a drain that takes too long.
func recorded(t *testing.T) *record {
	store := memkv.New()
	faults := kvfault.Wrap(store)
	a, b, c := start(t, store, "a", false), start(t, faults.Store, "b", false), start(t, memkv.New(), "c", true)
	rules, err := filepath.Abs(alerts)
	require.NoError(t, err)
	r := &record{T: t, began: time.Now(), server: testenv.StartPrometheus(t, fmt.Sprintf(`
global: {scrape_interval: 500ms, evaluation_interval: 500ms}
rule_files: [%s]
scrape_configs:
  - job_name: app
    static_configs: [targets: [%q, %q]]
  - job_name: native
    static_configs: [targets: [%q]]
`, rules, a.addr, b.addr, c.addr), "--enable-feature=native-histograms")}
	a.run(t)
	c.run(t)
	r.await(`election_is_leader{instance=%q} == 1`, a.addr)
	b.run(t)
	r.await(`election_role{instance=%q, role="heir"} == 1`, b.addr)
	r.await(`increase(election_refresh_margin_seconds_count{instance=%q}[5s]) > 0`, a.addr)
	select {
	case a.resign <- struct{}{}:
	case <-time.After(time.Minute):
		require.FailNow(t, "it does not lead any more")
	}
	r.await(`election_is_leader{instance=%q} == 1`, b.addr)
	r.await(`election_role{instance=%q, role="heir"} == 1`, a.addr)
	faults.On().DropRequests()
	r.await(`election_is_leader{instance=%q} == 1`, a.addr)
	faults.Heal()
	r.await(`election_drain_overruns_total{instance=%q, reason="expired"} == 1`, b.addr)
	r.await(`ALERTS{alertname="DrainOverrun", alertstate="firing", instance=%q, reason="expired", severity="critical"}`, b.addr)
	r.await(`histogram_count(increase(election_refresh_margin_seconds{job="native"}[5s])) > 0`)
	r.end = time.Now()
	return r
}

// placeholder matches what a legend takes from the labels.
var placeholder = regexp.MustCompile(`\{\{(\w+)\}\}`)

// Grafana is not at hand. But what it would show are the answers to these queries.
func TestEveryQueryHasAnAnswerInARecordedRun(t *testing.T) {
	r := recorded(t)

	t.Run("dashboard", func(t *testing.T) {
		r := r.in(t)
		b := readBoard(t)
		for _, p := range b.Panels {
			for _, q := range p.Targets {
				series := r.series(b.query(t, q.Expr))
				require.NotEmpty(t, series, "%s: %s", p.Title, q.Expr)
				for _, label := range placeholder.FindAllStringSubmatch(q.LegendFormat, -1) {
					require.NotEmpty(t, series[0][label[1]], "%s: %s has no label %s for the legend", p.Title, q.Expr, label[1])
				}
			}
		}
		values := regexp.MustCompile(`^label_values\((.*), (\w+)\)$`)
		for _, v := range b.Templating.List {
			if v.Type != "query" {
				continue
			}
			m := values.FindStringSubmatch(v.Query)
			require.NotNil(t, m, v.Query)
			var found []string
			r.get("label/"+m[2]+"/values", url.Values{"match[]": {b.query(t, m[1])}}, &found)
			require.Equal(t, map[string][]string{"job": {"app", "native"}, "election": {"billing"}}[v.Name], found, v.Query)
		}
	})

	t.Run("alerts", func(t *testing.T) {
		r := r.in(t)
		var loaded struct {
			Groups []struct {
				Rules []struct{ Name, State, Health, LastError string }
			}
		}
		r.get("rules", nil, &loaded)
		require.Len(t, loaded.Groups[0].Rules, len(rules(t)))
		for i, rule := range loaded.Groups[0].Rules {
			require.Equal(t, "ok", rule.Health, "%s: %s", rule.Name, rule.LastError)
			if rule.Name != "DrainOverrun" {
				require.NotEqual(t, "firing", rule.State, rule.Name)
			}
			for _, name := range metric.FindAllString(rules(t)[i].Expr, -1) {
				require.NotEmpty(t, r.series("count("+name+")"), "%s: %s", rule.Name, name)
			}
		}
	})

	t.Run("native", func(t *testing.T) {
		r := r.in(t)
		require.Empty(t, r.series(`{__name__=~"election_.*_bucket", job="native"}`), "the fixed buckets are dropped")
		require.NotEmpty(t, r.series(`histogram_quantile(0.05, rate(election_refresh_margin_seconds{job="native"}[5s]))`))
		for _, alert := range rules(t) {
			if alert.Alert == "LowMargin" {
				quantiles, _, _ := strings.Cut(alert.Expr, "\n  <")
				require.Len(t, r.series(strings.ReplaceAll(quantiles, "[10m]", "[5s]")), 2, "both kinds: %s", quantiles)
			}
		}
	})

	t.Run("metrics", func(t *testing.T) {
		r := r.in(t)
		for name := range described() {
			require.NotEmpty(t, append(r.series(name), r.series(name+"_count")...), name)
		}
	})
}
