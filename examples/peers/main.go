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
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/electkv/election"
	paxoskv "github.com/electkv/election/backends/paxos"
)

var errTurn = errors.New("it was this member's turn")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir, err := os.MkdirTemp("", "election-peers-")
	if err == nil {
		err = run(ctx, dir, []string{"127.0.0.1:7001", "127.0.0.1:7002", "127.0.0.1:7003"}, lead)
		os.RemoveAll(dir)
	}
	if err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
}

// run ends when each member has led, or one has failed, or ctx has ended.
func run(ctx context.Context, dir string, peers []string, lead func(context.Context, int) error) error {
	certificates, err := certified()
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var members sync.WaitGroup
	for i, addr := range peers {
		store, err := paxoskv.New(&paxoskv.Options{
			ID: addr, Peers: peers, Cluster: "example", TLS: certificates,
			Dir: filepath.Join(dir, fmt.Sprint(i+1)), Founding: true, // no quarantine: it never ran before
		})
		if err != nil {
			stop(err)
			break
		}
		defer store.Close()
		members.Go(func() {
			if err := campaign(ctx, store, i+1, lead); !errors.Is(err, errTurn) {
				stop(err)
			}
		})
	}
	members.Wait() // they have resigned when this returns
	return context.Cause(ctx)
}

func campaign(ctx context.Context, store *paxoskv.Store, member int, lead func(context.Context, int) error) error {
	candidate, err := election.New(store, "peers", nil)
	if err != nil {
		return err
	}
	return candidate.Run(ctx, func(ctx context.Context, _ *election.Term) error { return lead(ctx, member) })
}

// lead does what only one member may do at a time.
func lead(_ context.Context, member int) error {
	fmt.Println("member", member, "leads")
	return errTurn
}
