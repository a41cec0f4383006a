package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/electkv/election/cmd/elect/internal/doctor"
	"github.com/electkv/election/cmd/elect/internal/stores"
)

const doctorLong = `Say what the store can and cannot promise, and why.

Doctor writes a record under a name of its own, refreshes it and removes it, and looks
at what the server tells about itself. Then it looks for a lock that is, or was, at
each NAME. It says what kind of lock it looks like, who holds it, and with which
parameter of the URL an election coexists with it. It does not change that lock.

Each finding is OK, WARN (a limit to know about) or FAIL. FAIL means that elections do
not work here, or that a lock at NAME is stuck or would not keep them out. With -o
json each line is an object with level, subject, found, why and advice.

Exit status: 0, or 1 if anything is FAIL; 125 if elect failed.`

func newDoctor(s *settings) *cobra.Command {
	var out format
	var ttl time.Duration
	cmd := &cobra.Command{
		Use:               "doctor [flags] [NAME...]",
		Short:             "Say what the store can and cannot promise",
		Long:              doctorLong,
		Args:              allNames,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			address, err := s.address(stores.Default)
			if err != nil {
				return err
			}
			findings := address.Examine()
			if failed(findings) { // it may not open either
				if out == asText {
					fmt.Fprintf(cmd.OutOrStdout(), "%v\n\n", address)
				}
				return printFindings(cmd.OutOrStdout(), out, findings)
			}
			store, err := s.open()
			if err != nil {
				return err
			}
			defer store.Close()
			if !cmd.Flags().Changed("ttl") {
				ttl = nearestTTL(usualTTL, taken(store.KV))
			}
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			findings = append(findings, doctor.Examine(ctx, store, ttl)...)
			for _, name := range args {
				findings = append(findings, doctor.ExamineName(ctx, store, name)...)
			}
			if ctx.Err() != nil {
				return errors.New("interrupted")
			}
			if out == asText {
				fmt.Fprintf(cmd.OutOrStdout(), "%v, TTL %v\n\n", store.Address, ttl)
			}
			return printFindings(cmd.OutOrStdout(), out, findings)
		},
	}
	outputFlag(cmd, &out)
	cmd.Flags().DurationVar(&ttl, "ttl", usualTTL, "the TTL that you want to use")
	said(cmd.Flags(), "ttl", usualTTLText)
	complete(cmd, "ttl", cobra.ShellCompDirectiveNoFileComp)
	return cmd
}

// printFindings writes the findings; its error says that one is FAIL.
func printFindings(out io.Writer, f format, findings []stores.Finding) error {
	for _, found := range findings {
		if err := printFinding(out, f, found); err != nil {
			return err
		}
	}
	if failed(findings) {
		return exit{status: statusNo}
	}
	return nil
}

// failed reports whether a finding is FAIL.
func failed(findings []stores.Finding) bool {
	return slices.ContainsFunc(findings, func(f stores.Finding) bool { return f.Level == stores.Fail })
}

func printFinding(out io.Writer, f format, found stores.Finding) error {
	if f == asJSON {
		return jsonLine(out, found)
	}
	_, err := fmt.Fprintf(out, "%-4s  %s: %s\n", found.Level, printable(found.Subject), oneLine(errors.New(found.Found)))
	if err == nil && found.Why != "" {
		_, err = fmt.Fprintf(out, "      why: %s\n", found.Why)
	}
	if err == nil && found.Advice != "" {
		_, err = fmt.Fprintf(out, "      do:  %s\n", found.Advice)
	}
	return err
}
