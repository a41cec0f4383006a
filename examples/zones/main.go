// Example zones has a leader in each zone, and one of them leads all zones. Start a few processes
// in two zones, then kill some:
//
//	go run ./examples/zones -zone a
//	go run ./examples/zones -zone b
//
// Give each zone a store of its own that is reached from within the zone. Then a zone that is cut off
// has a leader all the same. The zones' leaders share another store.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/electkv/election"
	filekv "github.com/electkv/election/backends/file"
	"github.com/electkv/election/kv"
)

func main() {
	dir := flag.String("dir", filepath.Join(os.TempDir(), "election-examples"), "directory that all processes share")
	zone := flag.String("zone", "a", "name of this process's zone")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	inZone, err := filekv.New(filepath.Join(*dir, "zone-"+*zone), nil)
	if err != nil {
		log.Fatal(err)
	}
	inAll, err := filekv.New(*dir, nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := run(ctx, *zone, inZone, inAll, work); err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
}

// run leads the zone, and all zones, whenever it is elected for that.
func run(ctx context.Context, zone string, inZone, inAll kv.Store, work func(ctx context.Context, what string) error) error {
	one, err := election.New(inZone, "warm", nil)
	if err != nil {
		return err
	}
	all, err := election.New(inAll, "warm-all", &election.Options{Value: zone})
	if err != nil {
		return err
	}
	return one.Run(ctx, func(ctx context.Context, _ *election.Term) error {
		ctx, stop := context.WithCancel(ctx)
		var leads sync.WaitGroup
		defer leads.Wait() // the zone is not given up before all zones are
		defer stop()
		leads.Go(func() {
			err := all.Run(ctx, func(ctx context.Context, _ *election.Term) error {
				return work(ctx, "all zones")
			})
			if err != nil && ctx.Err() == nil {
				log.Print(err) // the zone's work goes on
			}
		})
		return work(ctx, "zone "+zone)
	})
}

// work goes on until ctx ends.
func work(ctx context.Context, what string) error {
	fmt.Println("lead", what)
	<-ctx.Done()
	fmt.Println("lead no more:", what)
	return nil
}
