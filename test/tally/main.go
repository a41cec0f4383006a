// Command tally runs go test with the arguments that it is given, prints what
// go test prints, and ends with the number of tests in each package.
//
//	go run ./test/tally -race ./...
//
// The cases of a table and of a suite count one each; a test that only holds
// others does not. The exit status is 0 if go test's is, else 1.
//
// When nothing was printed for half a minute, it says which tests run.
//
// Tests of leases have deadlines, which mean nothing while the host of a virtual machine
// runs something else. Where all that failed was late, and a tenth or more of the
// processors' time was withheld meanwhile, as the kernel counts it, the tests that failed
// are run again, up to three times, and the output says so. A test that found anything else
// wrong has failed, whatever the host did.
//
// If TALLY_FAILURES names a file, the reasons of the failures are appended to it, in short, so that they
// can be shown at the end of several runs.
//
// gotestsum counts and prints as well, and can run again what has failed. But it decides by
// the number of failures: it can tell neither a test that was late from one that found something
// wrong, nor a host that withholds its processors from one that does not.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "tally:", err)
		os.Exit(1)
	}
}

// run runs go test. An interrupt at the terminal reaches go test too, which ends
// by itself.
func run(ctx context.Context, args []string) error {
	ctx, cancel := context.WithCancel(ctx)
	var m meter
	var watching sync.WaitGroup
	watching.Go(func() { m.watch(ctx) })
	defer watching.Wait()
	defer cancel()
	start := time.Now()
	c, err := test(ctx, args)
	printed := c.print(os.Stdout, time.Since(start))
	if err = persist(ctx, &m, args, c, err); err != nil {
		err = errors.Join(err, c.keep(os.Getenv("TALLY_FAILURES")))
	}
	return errors.Join(err, printed)
}

// test runs go test, and counts.
func test(ctx context.Context, args []string) (*count, error) {
	c := newCount()
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return c, err
	}
	if err := cmd.Start(); err != nil {
		return c, err
	}
	p := newProgress(os.Stdout, time.Now())
	c.note = p.note
	watched, stop := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { p.watch(watched) })
	defer watching.Wait()
	defer stop()
	read := c.read(out, p)
	tested := cmd.Wait()
	if tested != nil {
		tested = fmt.Errorf("go test: %w", tested)
	}
	return c, errors.Join(tested, read)
}
