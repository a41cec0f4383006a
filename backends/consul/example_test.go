package consulkv_test

import (
	"context"
	"errors"
	"log"

	"github.com/hashicorp/consul/api"

	"github.com/electkv/election"
	consulkv "github.com/electkv/election/backends/consul"
)

// A leader writes to the Consul that elects it. The write is refused once its term is over,
// whatever the leader believes.
func Example() {
	client, err := api.NewClient(api.DefaultConfig())
	if err != nil {
		log.Fatal(err)
	}
	store := consulkv.New(client, &consulkv.Options{Prefix: "elections/"})
	candidate, err := election.New(store, "billing", nil)
	if err != nil {
		log.Fatal(err)
	}
	err = candidate.Run(context.Background(), func(ctx context.Context, term *election.Term) error {
		ok, _, _, err := client.KV().Txn(api.KVTxnOps{
			store.Guard(term.NamedRecord()),
			{Verb: api.KVSet, Key: "billed", Value: []byte("2026-11")},
		}, (&api.QueryOptions{RequireConsistent: true}).WithContext(ctx))
		if err == nil && !ok {
			err = errors.New("another leader has been elected")
		}
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
}
