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

	"github.com/spf13/cobra"

	"github.com/electkv/election"
	"github.com/electkv/election/cmd/elect/internal/storeurl"
)

const statusLong = `Print who leads each election NAME at the moment.

With -o json each line is an object with time, name, id, value, token and state:
"leader", "vacant" or, for somebody's lock that elect did not write, "foreign".

Exit status: 0 if each NAME is led, or held by a foreign lock; 1 if nobody leads
at least one of them; 125 if elect failed.`

func newStatus(s *settings) *cobra.Command {
	var out format
	cmd := &cobra.Command{
		Use:               "status [flags] NAME...",
		Short:             "Print who leads",
		Long:              statusLong,
		Args:              someNames,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := s.open()
			if err != nil {
				return err
			}
			defer store.Close()
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			states, err := look(ctx, store, args)
			if err != nil {
				return err
			}
			return printStatus(cmd.OutOrStdout(), out, states)
		},
	}
	outputFlag(cmd, &out)
	return cmd
}

func someNames(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return errors.New("no NAME; use elect status [flags] NAME...")
	}
	for _, name := range args {
		if err := checkName(name); err != nil {
			return err
		}
	}
	return nil
}

// look reads who leads each election.
func look(ctx context.Context, store *storeurl.Store, names []string) ([]state, error) {
	states := []state{}
	for _, name := range names {
		if err := probe(ctx, store, name); err != nil {
			return nil, err
		}
		leader, err := election.Current(ctx, store, name)
		vacant := errors.Is(err, election.ErrNoLeader)
		if err != nil && !vacant {
			return nil, fmt.Errorf("store %v: %w", store.Address, err)
		}
		states = append(states, stateOf(name, leader, vacant))
	}
	return states, nil
}

// printStatus writes the states; its error says that not everybody is led.
func printStatus(out io.Writer, f format, states []state) error {
	write := writeTable
	if f == asJSON {
		write = writeJSON
	}
	if err := write(out, states); err != nil {
		return err
	}
	for _, s := range states {
		if s.State == "vacant" {
			return exit{status: statusNo}
		}
	}
	return nil
}

func writeJSON(out io.Writer, states []state) error {
	for _, s := range states {
		if err := jsonLine(out, s); err != nil {
			return err
		}
	}
	return nil
}

func writeTable(out io.Writer, states []state) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tSTATE\tLEADER\tTOKEN\tVALUE")
	for _, s := range states {
		token := "-"
		if s.Token != 0 {
			token = fmt.Sprint(s.Token)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", printable(s.Name), s.State, dash(printable(s.ID)), token, dash(short(s.Value)))
	}
	return w.Flush()
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
