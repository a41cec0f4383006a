package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"reflect"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/electkv/election"
	"github.com/electkv/election/cmd/elect/internal/stores"
	"github.com/electkv/election/internal/snapshot"
	"github.com/electkv/election/kv"
)

// After trouble with the store, watch waits so long before it looks again.
const (
	leastPause = 200 * time.Millisecond
	mostPause  = 5 * time.Second
)

const watchLong = `Print who leads the election NAME: one line now, and one line for each change.

With -o json each line is an object with time, name, id, value, token and state. The
state is "leader", "vacant" or, for a lock that another program wrote, "foreign".

If the store fails after the first line, standard error says so, and the watch goes on
when the store answers again.

Exit status: 0 after SIGINT or SIGTERM, 125 if elect failed.`

func newWatch(s *settings) *cobra.Command {
	var out format
	cmd := &cobra.Command{
		Use:               "watch [flags] NAME",
		Short:             "Print each change of leader",
		Long:              watchLong,
		Args:              oneName("watch"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			log, err := s.logger()
			if err != nil {
				return err
			}
			store, err := s.observe(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			defer store.Close()
			s.warn(store.Address, log)
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			w := &watch{store: store, name: args[0], show: showState(cmd.OutOrStdout(), out), log: log}
			return w.run(ctx)
		},
	}
	outputFlag(cmd, &out)
	return cmd
}

// oneName wants exactly one NAME.
func oneName(command string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return fmt.Errorf("no NAME; use elect %s [flags] NAME", command)
		case len(args) > 1:
			return fmt.Errorf("more than one NAME: %q; use elect %s [flags] NAME", args, command)
		}
		return checkElection(args[0])
	}
}

func checkName(name string) error {
	if name == "" {
		return errors.New("NAME is empty")
	}
	return nil
}

// showState returns what writes a state as one line.
func showState(out io.Writer, f format) func(snapshot.State) error {
	if f == asJSON {
		return func(s snapshot.State) error { return jsonLine(out, s) }
	}
	return func(s snapshot.State) error {
		_, err := fmt.Fprintf(out, "%s  %s  %s\n", s.Time.Local().Format(dateAndTime), printable(s.Name), describe(s))
		return err
	}
}

// describe says in words who leads.
func describe(s snapshot.State) string {
	switch s.State {
	case snapshot.Vacant:
		return "nobody leads"
	case snapshot.Foreign:
		return "held by a lock that elect did not write: " + short(s.Value)
	}
	text := fmt.Sprintf("%s leads, token %d", printable(s.ID), s.Token)
	if s.Value != "" {
		text += ", value " + short(s.Value)
	}
	return text
}

// A watch prints changes until its context ends.
type watch struct {
	store *stores.Store
	name  string
	show  func(snapshot.State) error
	log   *slog.Logger

	last  *snapshot.State
	pause time.Duration
}

func (w *watch) run(ctx context.Context) error {
	if err := probe(ctx, w.store, w.name); err != nil {
		return unlessDone(ctx, err)
	}
	w.log.Info("watching", "election", w.name, "store", w.store.Address, "version", version())
	for {
		err := w.follow(ctx)
		if ctx.Err() != nil {
			return nil
		}
		var wrong writeError
		if errors.As(err, &wrong) || errors.Is(err, kv.ErrInvalid) {
			return err
		}
		w.pause = min(max(2*w.pause, leastPause), mostPause)
		w.log.Warn("looking again in "+w.pause.String(), "error", err)
		if !sleep(ctx, w.pause) {
			return nil
		}
	}
}

// A writeError is trouble with standard output, after which there is no point in
// going on.
type writeError struct{ error }

// follow prints changes until something is wrong.
func (w *watch) follow(ctx context.Context) error {
	for leader, err := range election.Watch(ctx, w.store.KV, w.name) {
		if err != nil && !errors.Is(err, election.ErrNoLeader) {
			return err
		}
		w.pause = 0
		s := snapshot.Of(w.name, leader, err)
		if w.last != nil && same(*w.last, s) {
			continue // seen before the trouble
		}
		w.last = &s
		if err := w.show(s); err != nil {
			return writeError{err}
		}
	}
	return errors.New("the watch ended")
}

func same(a, b snapshot.State) bool {
	a.Time = b.Time
	return reflect.DeepEqual(a, b)
}

// unlessDone returns nil for an error that comes of the end of ctx.
func unlessDone(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// sleep reports whether ctx is still alive after d.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
