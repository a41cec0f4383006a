// Command tally runs go test with the arguments that it is given, prints what
// go test prints, and ends with the number of tests in each package.
//
//	go run ./test/tally -race ./...
//
// The cases of a table and of a suite count one each; a test that only holds
// others does not. The exit status is 0 if go test's is, else 1.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
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
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return err
	}
	c := newCount()
	read := c.read(out, os.Stdout)
	tested := cmd.Wait()
	if tested != nil {
		tested = fmt.Errorf("go test: %w", tested)
	}
	return errors.Join(tested, read, c.print(os.Stdout, time.Since(start)))
}
