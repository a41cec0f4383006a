package etcdkv_test

import (
	"context"
	"errors"
	"log"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/electkv/election"
	etcdkv "github.com/electkv/election/backends/etcd"
)

// A leader writes to the etcd that elects it. The write is refused once its term is over,
// whatever the leader believes.
func Example() {
	ctx := context.Background()
	client, err := clientv3.New(etcdkv.Quiet(clientv3.Config{Endpoints: []string{"localhost:2379"}}))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	store := etcdkv.New(client, &etcdkv.Options{Prefix: "elections/"})
	candidate, err := election.New(store, "billing", nil)
	if err != nil {
		log.Fatal(err)
	}
	err = candidate.Run(ctx, func(ctx context.Context, term *election.Term) error {
		resp, err := client.Txn(ctx).
			If(store.Guard(term.NamedRecord())...).
			Then(clientv3.OpPut("billed", "2026-11")).
			Commit()
		if err == nil && !resp.Succeeded {
			err = errors.New("another leader has been elected")
		}
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
}
