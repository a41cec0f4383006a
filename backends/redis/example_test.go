package rediskv_test

import (
	"context"
	"log"

	"github.com/redis/go-redis/v9"

	"github.com/electkv/election"
	rediskv "github.com/electkv/election/backends/redis"
)

// A leader writes to the Redis that elects it. The script is not carried out once its term is
// over, whatever the leader believes.
func Example() {
	client := redis.NewClient(&redis.Options{Addr: "localhost:6379", ContextTimeoutEnabled: true})
	defer client.Close()
	store := rediskv.New(client, nil)
	candidate, err := election.New(store, "billing", nil)
	if err != nil {
		log.Fatal(err)
	}
	err = candidate.Run(context.Background(), func(ctx context.Context, term *election.Term) error {
		name, rec := term.NamedRecord()
		_, err := store.Eval(ctx, name, rec, "return redis.call('SET', KEYS[1], ARGV[1])", []string{"billed"}, "2026-11")
		return err // kv.ErrStale: another leader has been elected
	})
	if err != nil {
		log.Fatal(err)
	}
}
