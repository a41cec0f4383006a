// Example cron does a job at a fixed rate on one host process out of many. Start
// it a few times, and kill the one that works:
//
//	go run ./examples/cron
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/electkv/election"
	filekv "github.com/electkv/election/backends/file"
	"github.com/electkv/election/kv"
)

func main() {
	dir := flag.String("dir", filepath.Join(os.TempDir(), "election-examples"), "directory that the processes share")
	every := flag.Duration("every", 2*time.Second, "time from one run of the job to the next")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	store, err := filekv.New(*dir, nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := run(ctx, store, *every, job); err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
}

// run does the job while this process leads. An error of the job gives the
// leadership up, so that another process has its try.
func run(ctx context.Context, store kv.Store, every time.Duration, job func(context.Context, uint64) error) error {
	candidate, err := election.New(store, "cron", nil)
	if err != nil {
		return err
	}
	return candidate.Run(ctx, func(ctx context.Context, term *election.Term) error {
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-ticker.C:
			}
			if err := job(ctx, term.Token()); err != nil {
				return err
			}
		}
	})
}

// job stands for what must not be done twice. It hands its token to what it
// writes to, which refuses smaller ones.
func job(_ context.Context, token uint64) error {
	fmt.Println(time.Now().Format(time.TimeOnly), "job done under token", token)
	return nil
}
