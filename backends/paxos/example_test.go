package paxoskv_test

import (
	"context"
	"log"

	"github.com/electkv/election"
	paxoskv "github.com/electkv/election/backends/paxos"
)

// Each of three hosts runs this, with an ID, a certificate and a folder of its own.
func Example() {
	files := &paxoskv.Files{Cert: "host-1.pem", CA: "ca.pem"}
	store, err := paxoskv.New(&paxoskv.Options{
		ID:      "host-1:7000",
		Peers:   []string{"host-1:7000", "host-2:7000", "host-3:7000"},
		Cluster: "billing",
		GetTLS:  files.TLS, // new files are taken without a restart
		Dir:     "/var/lib/billing/election",
	})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	candidate, err := election.New(store, "billing", nil)
	if err != nil {
		log.Fatal(err)
	}
	err = candidate.Run(context.Background(), func(ctx context.Context, _ *election.Term) error {
		<-ctx.Done() // the work
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
}
