package paxoskv_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"log"
	"os"

	"github.com/electkv/election"
	paxoskv "github.com/electkv/election/backends/paxos"
)

// Each of three hosts runs this, with an ID, a certificate and a folder of its own.
func Example() {
	certificate, err := tls.LoadX509KeyPair("host-1.crt", "host-1.key")
	if err != nil {
		log.Fatal(err)
	}
	authority, err := os.ReadFile("ca.crt")
	if err != nil {
		log.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	store, err := paxoskv.New(&paxoskv.Options{
		ID:      "host-1:7000",
		Peers:   []string{"host-1:7000", "host-2:7000", "host-3:7000"},
		Cluster: "billing",
		TLS:     &tls.Config{Certificates: []tls.Certificate{certificate}, RootCAs: roots},
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
