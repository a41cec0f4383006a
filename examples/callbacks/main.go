// Example callbacks starts and stops a worker from two places, as a program does
// that has its own life cycle. Start it a few times:
//
//	go run ./examples/callbacks
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
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	store, err := filekv.New(*dir, nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := run(ctx, store, work); err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, store kv.Store, work func(context.Context, uint64)) error {
	candidate, err := election.New(store, "callbacks", nil)
	if err != nil {
		return err
	}
	w := worker{work: work}
	return candidate.Notify(ctx, election.Callbacks{OnElected: w.start, OnDefeated: w.stop})
}

// A worker works in a goroutine of its own.
type worker struct {
	work func(ctx context.Context, token uint64)
	done chan struct{}
}

func (w *worker) start(ctx context.Context, term *election.Term) {
	fmt.Println("start")
	w.done = make(chan struct{})
	go func() {
		defer close(w.done)
		w.work(ctx, term.Token())
	}()
}

// stop returns when the work has stopped: only then may another start.
func (w *worker) stop(cause error) {
	<-w.done
	fmt.Println("stopped:", cause)
}

// work goes on until ctx ends.
func work(ctx context.Context, token uint64) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			fmt.Println("work under token", token)
		}
	}
}
