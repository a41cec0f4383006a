// Example consul leads on Consul until it is interrupted. Start it a few times,
// and kill the one that leads: the next leads after twice the TTL.
//
//	make up
//	go run ./examples/consul
//
// Consul's own variables (CONSUL_HTTP_ADDR, CONSUL_HTTP_TOKEN …) say where it is.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/hashicorp/consul/api"

	"github.com/electkv/election"
	consulkv "github.com/electkv/election/backends/consul"
)

func main() {
	config := api.DefaultConfig()
	flag.StringVar(&config.Address, "addr", config.Address, "address of a Consul agent")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, config); err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, config *api.Config) error {
	client, err := api.NewClient(config)
	if err != nil {
		return err
	}
	store := consulkv.New(client, &consulkv.Options{Prefix: "examples/"})
	candidate, err := election.New(store, "consul", &election.Options{Logger: slog.Default()})
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
