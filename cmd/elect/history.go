package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/electkv/election"
	"github.com/electkv/election/internal/snapshot"
)

const historyLong = `Print the last terms of the election NAME: who led, when, and why each term ended.
The oldest is first; the present one is last.

WHY is
  finished   COMMAND ended by itself
  stopped    elect was told to stop
  asked      the leader was asked to resign, or to hand over
  gave_way   a candidate came that is preferred, or the term was as long as it may be
  expired    the lease was not refreshed in time
  taken      the leader's record was removed or overwritten
  unhealthy  a health check failed (in programs that use the library)
  resigned   the program resigned
  gone       the leader could not say: it died, lost the store, or stopped when nobody
             was there to take over
and "handed over" if the next leader got the lease from this one.

Leaders carry the history along in their records, so it costs no request: the last 64
terms, or as many as fit into 768 bytes. It is for people: times are by the clocks of
the hosts that led, and if a leader and its heir die at the same time, what only
they knew is lost. There is none while nobody leads, and with --succession none.

With -o json each line is an object with name, id, token, began, ended, reason and
handed_over.

Exit status: 0; 1 if nobody leads; 125 if elect failed.`

func newHistory(s *settings) *cobra.Command {
	var out format
	cmd := &cobra.Command{
		Use:               "history [flags] NAME",
		Short:             "Print who led before, and why it ended",
		Long:              historyLong,
		Args:              oneName("history"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := s.observe(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			defer store.Close()
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			if err := probe(ctx, store, args[0]); err != nil {
				return err
			}
			terms, err := election.History(ctx, store.KV, args[0])
			switch {
			case errors.Is(err, election.ErrNoLeader):
				return exit{statusNo, fmt.Errorf("%s: nobody leads, and the history is in the leader's record", printable(args[0]))}
			case err != nil:
				return fmt.Errorf("store %v: %w", store.Address, err)
			case len(terms) == 0:
				return fmt.Errorf("%s: another program's lock has no history: see elect doctor", printable(args[0]))
			}
			return printHistory(cmd.OutOrStdout(), out, args[0], terms)
		},
	}
	outputFlag(cmd, &out)
	return cmd
}

func printHistory(out io.Writer, f format, name string, terms []election.PastTerm) error {
	if f == asJSON {
		for _, t := range terms {
			if err := jsonLine(out, snapshot.TermOf(name, t)); err != nil {
				return err
			}
		}
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "LEADER\tTOKEN\tBEGAN\tENDED\tLASTED\tWHY")
	for _, t := range terms {
		ended, lasted, why := "-", age(&t.Began, time.Now()), "leads"
		if !t.Ended.IsZero() {
			ended, lasted, why = clockTime(t.Ended), t.Ended.Sub(t.Began).Round(time.Second/10).String(), string(t.Reason)
		}
		if t.HandedOver {
			why += ", handed over"
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\n", printable(t.ID), t.Token, clockTime(t.Began), ended, dash(lasted), why)
	}
	return w.Flush()
}

// clockTime returns a time as people read it, in the local zone.
func clockTime(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04:05.0")
}
