// Command report writes docs/reliability.md, and the pages and pictures in
// docs/reliability, from the results of a run. "make proof" does the run.
//
//	go run ./test/report -begin [-results DIR]        before a run: notes what it is made with
//	go run ./test/report [-results DIR] [-o FILE]     after it: writes the report
//
// Every figure in the report is read from the folder of results. What is not
// there is reported as not run, and never as a success. It has to be called in
// the root of the repository, where it reads the package documentation that the
// report quotes.
//
// The exit status is 1 if the results show what must not be (a row of the fault
// table that was not as expected, two leaders where none were expected, a
// planted bug that nobody saw …), and 2 if they cannot be read or the report not
// be written.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, out, log io.Writer) (status int) {
	flags := flag.NewFlagSet("report", flag.ContinueOnError)
	flags.SetOutput(log)
	dir := flags.String("results", cmp.Or(os.Getenv("ELECTION_RESULTS"), "dist/results"), "the `folder` of the results")
	file := flags.String("o", "docs/reliability.md", "the `file` of the report; the pages and pictures behind it are in a folder of that name")
	begins := flags.Bool("begin", false, "make the folder of the results, and note what the run is made with")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if *begins {
		if err := begin(ctx, *dir, log); err != nil {
			fmt.Fprintln(log, "report:", err)
			return 2
		}
		return 0
	}
	r, err := load(*dir)
	if err == nil {
		err = publish(r, *dir, "doc.go", *file)
	}
	if err != nil {
		fmt.Fprintln(log, "report:", err)
		return 2
	}
	fmt.Fprintln(out, "wrote", *file)
	alarms := r.alarms()
	for _, alarm := range alarms {
		fmt.Fprintln(log, "report:", alarm)
	}
	return min(len(alarms), 1)
}
