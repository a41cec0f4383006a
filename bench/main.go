// Command bench compares this library with others that elect leaders or lock, on the
// same servers, and writes down what it finds.
//
//	go run .                                     every work on every store: RESULTS.md and a file in results/
//	go run . -work handover -store etcd,redis    some of them
//	go run . -quick                              whether all works work, in a minute
//	go run . -report results/ONE.json,results/OTHER.json -before results/OLD.json
//	                                             RESULTS.md from files, and run nothing
//
// Candidates are in processes of their own: this program starts itself. Instants are
// compared by the clock that all processes of a host share. Servers are real ones, with
// their defaults but for what RESULTS.md says. Speed is never asserted: the tests run
// every work once, so that none rots. The bench needs Linux.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	if os.Getenv(workerVariable) != "" {
		os.Exit(beWorker())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// beWorker is what main is in the processes of candidates.
func beWorker() int {
	log.SetOutput(io.Discard) // what clients have to say of each connection
	if err := serve(context.Background(), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench: worker:", err)
		return 1
	}
	return 0
}

func command(ctx context.Context, args []string) error {
	o, err := parse(args, os.Stderr)
	if err != nil {
		return err
	}
	if len(o.report) > 0 {
		return writeReport(o, o.report)
	}
	r, failure := runAll(ctx, o, strings.Join(append([]string{"go run ."}, args...), " "), os.Stderr)
	if len(r.Runs) == 0 {
		return failure
	}
	path, err := r.save(o.resultsFolder()) // also what was measured before it was stopped
	if err != nil {
		return errors.Join(failure, err)
	}
	fmt.Fprintln(os.Stderr, "written:", path)
	return errors.Join(failure, writeReport(o, []string{path}))
}
