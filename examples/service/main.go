// Example service is a service of which one instance works. docs/run/library.md says how to run it.
package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"

	"github.com/electkv/election"
	rediskv "github.com/electkv/election/backends/redis"
	electionhttp "github.com/electkv/election/observe/http"
	electionprom "github.com/electkv/election/observe/prom"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil && ctx.Err() == nil {
		slog.Error("exiting", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	config, err := redis.ParseURL(cmp.Or(os.Getenv("REDIS_URL"), "redis://localhost:6379"))
	if err != nil {
		return err
	}
	config.ContextTimeoutEnabled = true // a request ends when the library wants it to
	client := redis.NewClient(config)
	defer client.Close()
	store, metrics := rediskv.New(client, nil), electionprom.New(nil)
	prometheus.MustRegister(metrics)
	candidate, err := election.New(store, "billing", &election.Options{Logger: slog.Default(), Hooks: metrics.Hooks()})
	if err != nil {
		return err
	}
	answers, err := electionhttp.New(candidate, store, nil)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", promhttp.Handler())
	mux.Handle("/election/", http.StripPrefix("/election", answers))
	server := &http.Server{Addr: cmp.Or(os.Getenv("LISTEN"), ":8080"), Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	defer server.Close() // last, so that probes are answered until the election is free
	ctx, fail := context.WithCancelCause(ctx)
	go func() { fail(server.ListenAndServe()) }()
	err = candidate.Run(ctx, func(ctx context.Context, term *election.Term) error { return bill(ctx, term, store) })
	return errors.Join(err, context.Cause(ctx))
}

// bill does what only one instance may do, and returns soon after ctx has ended. Redis carries out
// the write only while it holds the record of this term, with its token.
func bill(ctx context.Context, term *election.Term, store *rediskv.Store) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		name, record := term.NamedRecord()
		if _, err := store.Eval(ctx, name, record, "return redis.call('INCR', KEYS[1])", []string{"billed"}); err != nil {
			return err // kv.ErrStale if another instance leads
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
