// Example redis leads on Redis until it is interrupted. Start it a few times, and
// stop the one that leads:
//
//	make up
//	go run ./examples/redis
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/redis/go-redis/v9"

	"github.com/electkv/election"
	rediskv "github.com/electkv/election/backends/redis"
)

func main() {
	addr := flag.String("addr", cmp.Or(os.Getenv("REDIS_URL"), "redis://127.0.0.1:6379"), "URL of Redis")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *addr); err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, addr string) error {
	config, err := redis.ParseURL(addr)
	if err != nil {
		return err
	}
	config.ContextTimeoutEnabled = true
	client := redis.NewClient(config)
	defer client.Close()

	store := rediskv.New(client, &rediskv.Options{Prefix: "examples:"})
	candidate, err := election.New(store, "redis", &election.Options{Logger: slog.Default()})
	if err != nil {
		return err
	}
	return candidate.Run(ctx, lead)
}

// lead does what only one process may do, and returns soon after ctx has ended.
func lead(ctx context.Context, term *election.Term) error {
	fmt.Println("leading with token", term.Token())
	<-ctx.Done()
	fmt.Println("stopped:", context.Cause(ctx))
	return nil
}
