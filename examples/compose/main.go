// Example compose is a service of which several containers run and one works:
// docs/run/compose.md says how to start them, and what happens when one is killed, frozen or
// cut off from the network.
package main

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/electkv/election"
	rediskv "github.com/electkv/election/backends/redis"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stdout, nil)))
	if err := run(ctx); err != nil && ctx.Err() == nil {
		slog.Error("exiting", "error", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	config, err := redis.ParseURL(cmp.Or(os.Getenv("REDIS_URL"), "redis://127.0.0.1:6379"))
	if err != nil {
		return err
	}
	config.ContextTimeoutEnabled = true // a request ends when the library wants it to
	client := redis.NewClient(config)
	defer client.Close()

	ttl, err := time.ParseDuration(cmp.Or(os.Getenv("TTL"), "10s"))
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	candidate, err := election.New(rediskv.New(client, nil), "worker", &election.Options{ID: host, TTL: ttl})
	if err != nil {
		return err
	}
	slog.Info("waiting to lead")
	return candidate.Run(ctx, lead)
}

// lead does what only one container may do at a time, and returns soon after ctx has
// ended.
func lead(ctx context.Context, term *election.Term) error {
	slog.Info("leading", "token", term.Token())
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			slog.Info("stopped", "token", term.Token(), "cause", context.Cause(ctx))
			return nil
		case <-ticker.C:
			slog.Info("working", "token", term.Token())
		}
	}
}
