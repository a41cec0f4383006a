package electionprom_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/mem"

	"github.com/electkv/election/observe/prom"
)

// All candidates of a process share the metrics.
func Example() {
	metrics := electionprom.New(nil)
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics)

	candidate, err := election.New(memkv.New(), "billing", &election.Options{Hooks: metrics.Hooks()})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = candidate.Run(context.Background(), func(context.Context, *election.Term) error {
		return errors.New("the work is done")
	})
	fmt.Println(err)

	handler := promhttp.HandlerFor(registry, promhttp.HandlerOpts{}) // serve it at /metrics
	fmt.Println(line(handler, "election_is_leader"))
	fmt.Println(line(handler, `election_terms_ended_total{election="billing",reason="finished"}`))
	// Output:
	// the work is done
	// election_is_leader{election="billing"} 0
	// election_terms_ended_total{election="billing",reason="finished"} 1
}

// A process with thousands of elections counts them together.
func Example_group() {
	metrics := electionprom.New(&electionprom.Options{
		Group: func(name string) string {
			kind, _, _ := strings.Cut(name, "/") // "shard/4711"
			return kind
		},
	})
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics)
	store := memkv.New()
	for shard := range 100 {
		candidate, err := election.New(store, fmt.Sprintf("shard/%d", shard), &election.Options{Hooks: metrics.Hooks()})
		if err != nil {
			fmt.Println(err)
			return
		}
		err = candidate.Run(context.Background(), func(context.Context, *election.Term) error {
			return nil
		})
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(line(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), "election_terms_total"))
	// Output: election_terms_total{election="shard"} 100
}

// line returns the first line of the metrics that begins with a text.
func line(metrics http.Handler, begins string) string {
	answer := httptest.NewRecorder()
	metrics.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for line := range strings.Lines(answer.Body.String()) {
		if strings.HasPrefix(line, begins) {
			return strings.TrimSpace(line)
		}
	}
	return "there is no " + begins
}
