package gocronlock_test

import (
	"context"
	"fmt"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/electkv/election"
	"github.com/electkv/election/backends/mem"
	"github.com/electkv/election/lock/gocronlock"
)

// The scheduler of the leader runs the jobs.
func Example() {
	candidate, err := election.New(memkv.New(), "cron", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	elector := gocronlock.NewElector(candidate)
	scheduler, err := gocron.NewScheduler(gocron.WithDistributedElector(elector))
	if err != nil {
		fmt.Println(err)
		return
	}
	ran := make(chan struct{}, 1)
	_, err = scheduler.NewJob(gocron.DurationJob(10*time.Millisecond), gocron.NewTask(func() {
		if term, err := elector.Term(); err == nil {
			report(term.Context(), term.Token())
			select {
			case ran <- struct{}{}:
			default:
			}
		}
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- elector.Run(ctx) }()
	scheduler.Start()
	<-ran
	fmt.Println("a job has run")
	fmt.Println(scheduler.Shutdown()) // waits for the jobs,
	stop()                            // and only then others may lead
	fmt.Println(<-ended)
	// Output:
	// a job has run
	// <nil>
	// context canceled
}

func report(context.Context, uint64) {}
