//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/electkv/election/cmd/elect/internal/demo"
	"github.com/electkv/election/cmd/elect/internal/guard"
	"github.com/electkv/election/cmd/elect/internal/stores"
)

// candidateRole is the first argument that makes this program a candidate of the
// demo.
const candidateRole = "__candidate"

// memberRole is that of a process of elect demo groups.
const memberRole = "__member"

const rootExample = `  elect demo                                  # an election of three processes
  elect run billing -- ./billing-daemon       # run it while this candidate leads
  elect run --store redis://localhost billing -- ./billing-daemon
  elect status billing                        # print who leads
  elect serve                                 # a page that shows all elections live`

// processCommands are the commands that start processes.
func processCommands(s *settings) []*cobra.Command {
	return []*cobra.Command{newRun(s), newDemo(s)}
}

// role returns what this program was started again for by itself, and false if it
// was not.
func role(args []string) (perform func() error, ok bool) {
	if len(args) == 0 {
		return nil, false
	}
	switch args[0] {
	case guard.Role:
		return func() error { return guard.Main(args[1:], release) }, true
	case candidateRole:
		return func() error { return candidate(args[1:]) }, true
	case memberRole:
		return func() error { return member(args[1:]) }, true
	}
	return nil, false
}

// candidate is one of the demo's three: elect __candidate NAME PART, with the URL of
// the store in the environment, where nobody reads a password.
func candidate(args []string) error {
	var part demo.Part
	if len(args) != 2 || json.Unmarshal([]byte(args[1]), &part) != nil {
		return errors.New("a candidate is started by elect demo only")
	}
	address, err := stores.Parse(os.Getenv("ELECT_STORE"), os.Getenv)
	if err != nil {
		return err
	}
	store, err := address.Open()
	if err != nil {
		return err
	}
	defer store.Close()
	ctx, stop := untilUnheard()
	defer stop()
	c := &demo.Candidate{Store: store.KV, Name: args[0], Part: part, Out: os.Stdout}
	return c.Run(ctx)
}

// untilUnheard returns what ends when the demo does, or this process is told to.
func untilUnheard() (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // until the demo closes it, or dies
		cancel(errors.New("the demo is over"))
	}()
	return ctx, stop
}
