package otel_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/kv/kvfault"
	"github.com/electkv/election/observe/otel"
)

func TestPrometheusGetsNamesInItsOwnForm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := client.NewPedanticRegistry()
		exporter, err := prometheus.New(prometheus.WithRegisterer(registry), prometheus.WithoutScopeInfo(), prometheus.WithoutTargetInfo())
		require.NoError(t, err)
		telemetry, err := electionotel.New(&electionotel.Options{MeterProvider: metric.NewMeterProvider(metric.WithReader(exporter))})
		require.NoError(t, err)
		faults := kvfault.Wrap(memkv.New())
		c, err := election.New(faults.Store, "billing", &election.Options{ID: "a", TTL: ttl, NoHeir: true, Hooks: telemetry.Hooks()})
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- c.Run(ctx, func(ctx context.Context, _ *election.Term) error {
				<-ctx.Done()
				time.Sleep(time.Second)
				return nil
			})
		}()
		synctest.Wait()
		faults.On(kvfault.Refresh).DropRequests()
		time.Sleep(ttl)
		faults.Heal()
		time.Sleep(2 * ttl)
		synctest.Wait()
		defer func() {
			stop()
			require.ErrorIs(t, <-done, election.ErrStopped)
		}()
		families, err := registry.Gather()
		require.NoError(t, err)
		names := make(map[string][]string)
		for _, f := range families {
			names[f.GetName()] = nil
			for _, l := range f.GetMetric()[0].GetLabel() {
				names[f.GetName()] = append(names[f.GetName()], l.GetName())
			}
		}
		require.Equal(t, map[string][]string{
			"election_is_leader":                       {"election_name"},
			"election_role":                            {"election_name", "election_role"},
			"election_token":                           {"election_name"},
			"election_trust_remaining_seconds":         {"election_name"},
			"election_store_contact_timestamp_seconds": {"election_name"},
			"election_terms_total":                     {"election_name"},
			"election_terms_ended_total":               {"election_name", "election_reason"},
			"election_store_errors_total":              {"election_name", "election_store_operation"},
			"election_term_duration_seconds":           {"election_name"},
			"election_campaign_duration_seconds":       {"election_name"},
			"election_drain_duration_seconds":          {"election_name"},
			"election_refresh_duration_seconds":        {"election_name", "election_outcome"},
			"election_refresh_margin_seconds":          {"election_name"},
		}, names)
	})
}
