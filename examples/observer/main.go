// Example observer tells who leads, and stands for nothing. Run it beside
// another example:
//
//	go run ./examples/cron &
//	go run ./examples/observer -name cron
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/electkv/election"
	filekv "github.com/electkv/election/backends/file"
	"github.com/electkv/election/kv"
)

func main() {
	dir := flag.String("dir", filepath.Join(os.TempDir(), "election-examples"), "directory that the processes share")
	name := flag.String("name", "cron", "name of the election")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	store, err := filekv.New(*dir, nil)
	if err != nil {
		log.Fatal(err)
	}
	err = observe(ctx, store, *name, func(s string) { fmt.Println(s) })
	if ctx.Err() == nil {
		log.Fatal(err)
	}
}

// observe tells of each change until ctx ends, and returns why.
func observe(ctx context.Context, store kv.Store, name string, tell func(string)) (last error) {
	for leader, err := range election.Watch(ctx, store, name) {
		switch {
		case errors.Is(err, election.ErrNoLeader):
			tell("nobody leads")
		case err != nil: // trouble with the store, which may pass, or the end
			last = err
			if ctx.Err() == nil {
				log.Print(err)
			}
		case leader.Foreign:
			tell(fmt.Sprintf("held by another program: %q", leader.Value))
		default:
			tell(fmt.Sprintf("%s leads under token %d, and says %q", leader.ID, leader.Token, leader.Value))
		}
	}
	return last
}
