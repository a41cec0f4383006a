package group_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/electkv/election"
	"github.com/electkv/election/group"
	"github.com/electkv/election/kv"
)

// Each of three hosts runs this, with an ID and a certificate of its own.
func Example() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	files := &group.Files{Cert: "elect.pem", CA: "ca.pem"}
	m, err := group.New(&group.Options{
		ID:      "host-1:7000",
		Peers:   []string{"host-1:7000", "host-2:7000", "host-3:7000"},
		Cluster: "cache",
		GetTLS:  files.TLS, // new files are taken without a restart
	})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	err = m.Run(ctx, func(ctx context.Context, g group.Group) error {
		fmt.Println("warming the caches of", g.Members)
		<-ctx.Done() // the work
		return nil
	})
	log.Println(err)
}

// Every member learns which group it is in, whether it leads or not.
func ExampleMember_Watch() {
	var m *group.Member // of group.New
	for g := range m.Watch(context.Background()) {
		if g.Number == "" {
			fmt.Println("in no group, for the moment")
			continue
		}
		fmt.Println(g.Leader, "leads", g.Members)
	}
}

// The members find each other by a store, and go on without it.
func ExampleMember_SetRoster() {
	var m *group.Member // of group.New, with its own address as Peers
	var store kv.Store  // that of etcd, Consul or Redis
	ctx := context.Background()
	own, err := election.New(store, "cache", &election.Options{ID: "host-1:7000"}) // the ID of m
	if err != nil {
		log.Fatal(err)
	}
	go func() { log.Println(own.Attend(ctx)) }()
	for listed, err := range election.WatchMembers(ctx, store, "cache") {
		if err != nil {
			continue // the peers stay as they are; Attend logs what is wrong
		}
		addrs := []string{}
		for _, one := range listed {
			addrs = append(addrs, one.ID)
		}
		if err := m.SetRoster(addrs); err != nil {
			log.Println(err)
		}
	}
}
