// Example peers elects a leader among three members that share no store: each keeps
// its part of the safe for the others. Here they are in one process, for show, and
// each leads once:
//
//	go run ./examples/peers
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/electkv/election"
	paxoskv "github.com/electkv/election/backends/paxos"
)

var errTurn = errors.New("it was this member's turn")

func main() {
	dir, err := os.MkdirTemp("", "election-peers-")
	if err == nil {
		defer os.RemoveAll(dir)
		err = run(context.Background(), dir, []string{"127.0.0.1:7001", "127.0.0.1:7002", "127.0.0.1:7003"})
	}
	if err != nil {
		log.Fatal(err)
	}
}

// run ends when each member has led, or one has failed.
func run(ctx context.Context, dir string, peers []string) error {
	certificates, err := certified()
	if err != nil {
		return err
	}
	led := make(chan error, len(peers))
	for i, addr := range peers {
		store, err := paxoskv.New(paxoskv.Options{
			ID: addr, Peers: peers, Cluster: "example", TLS: certificates,
			Dir: filepath.Join(dir, fmt.Sprint(i+1)), Founding: true, // no quarantine: it never ran before
		})
		if err != nil {
			return err
		}
		defer store.Close()
		candidate, err := election.New(store, "peers", nil)
		if err != nil {
			return err
		}
		go func() {
			led <- candidate.Run(ctx, func(context.Context, *election.Term) error {
				fmt.Println("member", i+1, "leads") // what only one may do at a time
				return errTurn
			})
		}()
	}
	for range peers {
		if err := <-led; !errors.Is(err, errTurn) {
			return err
		}
	}
	return nil
}
