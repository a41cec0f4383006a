package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/electkv/election/cmd/elect/internal/peers"
	"github.com/electkv/election/cmd/elect/internal/stores"
)

const peersLong = `Make certificates and URLs for candidates that are the store themselves: see paxos in
elect help stores.

init makes a folder with an authority, and in it a folder for each member, which is
copied to the member's host:

  elect.pem  the member's key and its certificate, in one file
  ca.pem     the certificate of the authority
  elect.env  ELECT_STORE, ELECT_CERT, ELECT_KEY and ELECT_CACERT

Keep the folder on one host that is no member, or offline: whoever has ca.key can vote.
renew makes new certificates in it. Members take new files without a restart: they read
them before each connection. A connection ends when the certificate with which it began
expires, so the old ones are gone by then.`

const peersExample = `  elect peers init --dir nightly a.example:7000 b.example:7000 c.example:7000
  elect peers renew --dir nightly
  elect peers add --dir nightly --client laptop

On each host, when its folder is in /etc/elect-nightly:

  set -a; . /etc/elect-nightly/elect.env; set +a
  elect run report -- ./report.sh
  elect doctor

Three members on this host, to try it:

  elect peers init --dir try --here 127.0.0.1:7001 127.0.0.1:7002 127.0.0.1:7003`

func newPeers() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "peers",
		Short:   "Make certificates and URLs for candidates without a store",
		Long:    peersLong,
		Example: peersExample,
		Args:    noCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newPeersInit(), newPeersRenew(), newPeersAdd())
	return cmd
}

const peersInitLong = `Make the authority of a new cluster, and certificates and URLs for its members.

Each member is named by the address at which the others reach it. Three members go on
without one, five without two. The folder must be new or empty.

The authority lasts 10 years. Certificates last a year. To renew one, copy the new
file to its host: a member whose certificate expires is cut off. A certificate is good
for its host alone, for servers and clients, and from an hour before it was made, for
clocks that are behind.`

// aYear is how long certificates last by default.
const aYear = 365 * 24 * time.Hour

func newPeersInit() *cobra.Command {
	var plan peers.Plan
	var dir string
	var here bool
	valid := aYear
	cmd := &cobra.Command{
		Use:   "init [flags] HOST:PORT...",
		Short: "Make an authority, and certificates and URLs of members",
		Long:  peersInitLong,
		RunE: func(cmd *cobra.Command, args []string) error {
			if whole, err := filepath.Abs(dir); err == nil && dir != "" {
				plan.Cluster = cmp.Or(plan.Cluster, filepath.Base(whole))
			}
			plan.Peers, plan.ValidFor = args, peers.Span(valid)
			if !here {
				plan.Files = cmp.Or(plan.Files, "/etc/elect-"+plan.Cluster)
				plan.State = cmp.Or(plan.State, "/var/lib/elect-"+plan.Cluster)
			}
			plan, err := plan.Check()
			if err != nil {
				return err
			}
			if err := parses(plan.URL("/", plan.Peers[0])); err != nil {
				return fmt.Errorf("--with: %w", err)
			}
			folder, issued, err := peers.Init(dir, plan, time.Now())
			if err != nil {
				return err
			}
			doubt(cmd.ErrOrStderr(), folder.Doubt())
			out := cmd.OutOrStdout()
			fmt.Fprintf(out, "The certificates of %d members are in %s.\n\n", len(issued), dir)
			if here {
				fmt.Fprint(out, "For each member, in a shell of its own:\n\n")
				for _, i := range issued {
					printStart(out, i.Target)
				}
			} else {
				printCopies(out, issued, "*")
				fmt.Fprint(out, "\nThen on each host:\n\n")
				printStart(out, plan.Files)
			}
			fmt.Fprintf(out, "\nKeep %s to yourself: whoever has it can vote.\n", filepath.Join(dir, "ca.key"))
			printDue(out, folder)
			return ending(cmd.ErrOrStderr(), folder)
		},
	}
	dirFlag(cmd, &dir)
	flags := cmd.Flags()
	flags.StringVar(&plan.Cluster, "cluster", "", "`NAME` that no other cluster of the network has (default: the last part of --dir)")
	validFlag(cmd, &valid)
	flags.StringVar(&plan.Files, "files", "", "`folder` on each host that gets its files (default /etc/elect-CLUSTER)")
	flags.StringVar(&plan.State, "state", "", "`folder` on each host in which its member keeps what it has promised (default /var/lib/elect-CLUSTER)")
	flags.BoolVar(&here, "here", false, "all members are on this host, and their files stay where they are made")
	flags.StringVar(&plan.Parameters, "with", "", "more `parameters` for the URLs, such as max-ttl=30s; see elect help stores")
	cmd.MarkFlagsMutuallyExclusive("here", "files")
	cmd.MarkFlagsMutuallyExclusive("here", "state")
	return cmd
}

const peersRenewLong = `Make new certificates for members and clients: those that have less than a third of
their life left or are not right, or those that are named, or all.

Run it from cron or a timer: it prints which files to copy where, and its exit status says
whether there are any. A member takes the file without a restart, for its next
connection.

Exit status: 0 if there are new certificates; 1 if none was due; 125 if elect failed.`

func newPeersRenew() *cobra.Command {
	var dir string
	var all bool
	var valid time.Duration
	cmd := &cobra.Command{
		Use:   "renew [flags] [HOST:PORT or CLIENT...]",
		Short: "Make new certificates for those that will soon need them",
		Long:  peersRenewLong,
		RunE: func(cmd *cobra.Command, args []string) error {
			if all && len(args) > 0 {
				return errors.New("names together with --all: use one of them")
			}
			folder, err := peers.Open(dir, time.Now())
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("valid-for") {
				if err := folder.SetValidFor(valid); err != nil {
					return err
				}
			}
			issued, err := folder.Renew(args, all, time.Now())
			printCopies(cmd.OutOrStdout(), issued, peers.PairFile)
			if err != nil {
				return err
			}
			printDue(cmd.OutOrStdout(), folder)
			if err := ending(cmd.ErrOrStderr(), folder); err != nil {
				return err
			}
			if len(issued) == 0 {
				return exit{status: statusNo}
			}
			return nil
		},
	}
	dirFlag(cmd, &dir)
	cmd.Flags().BoolVar(&all, "all", false, "renew all, however long they last")
	validFlag(cmd, &valid)
	said(cmd.Flags(), "valid-for", "as before")
	return cmd
}

const peersAddLong = `Add members, or a client, to the cluster of a folder.

A client asks the members (elect status, watch, doctor), or is a candidate without a
vote. It can be added at any time.

All members must have the same list, and it cannot change while they run: stop all of
them, copy what this command prints, and start them again. That is safe after max-ttl (1m).

To take a member out, make a new folder for the others with init. In this one its
certificate would still let it in as a client.`

func newPeersAdd() *cobra.Command {
	var dir string
	var clients []string
	cmd := &cobra.Command{
		Use:   "add [flags] [HOST:PORT...]",
		Short: "Add members, or a client",
		Long:  peersAddLong,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args)+len(clients) == 0 {
				return errors.New("nobody to add: name a member, host:port, or a client, --client NAME")
			}
			folder, err := peers.Open(dir, time.Now())
			if err != nil {
				return err
			}
			issued, edited, err := folder.Add(args, clients, time.Now())
			if err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			printCopies(out, issued, "*")
			if len(args) > 0 {
				doubt(cmd.ErrOrStderr(), folder.Doubt())
				fmt.Fprint(out, "\nAll members need the new list. Stop all of them, wait for max-ttl (1m), copy, and start them again:\n\n")
				printCopies(out, folder.Others(issued), peers.EnvFile)
			}
			for _, path := range edited {
				fmt.Fprintf(cmd.ErrOrStderr(), "elect: warning: %s was edited and stays as it is: put peers=%s into it\n", path, strings.Join(folder.Peers, ","))
			}
			return ending(cmd.ErrOrStderr(), folder)
		},
	}
	dirFlag(cmd, &dir)
	cmd.Flags().StringSliceVar(&clients, "client", nil, "`NAME` of a client to add")
	return cmd
}

// dirFlag adds --dir, which is needed.
func dirFlag(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "dir", "", "`folder` with the cluster's authority (required)")
	if err := cmd.MarkFlagRequired("dir"); err != nil {
		panic(err) // there is no such flag
	}
}

func validFlag(cmd *cobra.Command, valid *time.Duration) {
	cmd.Flags().DurationVar(valid, "valid-for", *valid, "how long certificates last")
}

// parses says what is wrong with a URL that has been made.
func parses(url string) error {
	_, err := stores.Parse(url, func(name string) string {
		return map[string]string{"ELECT_CERT": "c", "ELECT_KEY": "c", "ELECT_CACERT": "c"}[name]
	})
	return err
}

// printCopies says which files to copy where.
func printCopies(out io.Writer, issued []peers.Issue, files string) {
	for _, i := range issued {
		fmt.Fprintf(out, "copy %s to %s/\n", filepath.Join(i.Folder, files), i.Target)
	}
}

// printStart says how to start elect with the files of a folder.
func printStart(out io.Writer, folder string) {
	path := filepath.Join(folder, peers.EnvFile)
	if strings.ContainsAny(path, " \"$`&;|<>()*?[]~#!") {
		path = "'" + path + "'" // there are no quotes in it
	}
	fmt.Fprintf(out, "  set -a; . %s; set +a; elect run NAME -- COMMAND\n", path)
}

// printDue says when to renew.
func printDue(out io.Writer, folder *peers.Folder) {
	who, at := folder.Due()
	fmt.Fprintf(out, "The first certificate to renew is that of %s, on %s.\n", who, at.UTC().Format(time.DateOnly))
}

// ending warns of an authority whose end cuts the life of certificates short.
func ending(errs io.Writer, folder *peers.Folder) error {
	if end := folder.Ends(); end.Before(time.Now().Add(time.Duration(folder.ValidFor))) {
		_, err := fmt.Fprintf(errs, "elect: warning: the authority ends at %s, and all certificates with it: move to another one; docs/peers.md says how\n", end.UTC().Format(time.DateOnly))
		return err
	}
	return nil
}

func doubt(errs io.Writer, text string) {
	if text != "" {
		fmt.Fprintln(errs, "elect: warning: "+text)
	}
}
