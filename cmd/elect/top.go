package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"github.com/electkv/election/cmd/elect/internal/top"
)

const topLong = `Show elections live on a terminal: who leads and for how long, who is next, how
often leaders changed, and a timeline. A key opens one election: its candidates, and how
each term ended. The candidates that only wait are listed if they keep a roster (elect
run --roster).

Without a NAME it shows all elections of the store, as elect serve does. It writes
nothing to the store. Keys: arrows, enter, q to quit; ? shows all.

Exit status: 0 after q, SIGINT or SIGTERM, 125 if elect failed.`

func newTop(s *settings) *cobra.Command {
	o := outlook{settings: s}
	cmd := &cobra.Command{
		Use:               "top [flags] [NAME...]",
		Short:             "Show elections live on the terminal",
		Long:              topLong,
		Example:           "  elect top\n  elect top --prefix team-a/\n  elect top billing nightly",
		Args:              o.args,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, names []string) error {
			if !term.IsTerminal(os.Stdin.Fd()) || !term.IsTerminal(os.Stdout.Fd()) {
				return errors.New("top needs a terminal; elect watch and elect status print lines, and elect serve has a page")
			}
			log, err := s.logger()
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			c, store, err := o.open(ctx, cmd.ErrOrStderr(), log, names)
			if err != nil {
				return unlessDone(ctx, err)
			}
			defer store.Close()
			defer c.Close()
			screen := tea.NewProgram(top.New(c, store.Address.String()), tea.WithContext(ctx), tea.WithoutSignalHandler())
			_, err = screen.Run()
			return unlessDone(ctx, err)
		},
	}
	o.flags(cmd)
	return cmd
}
