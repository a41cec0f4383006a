package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/electkv/election/cmd/elect/internal/stores"
)

const rootLong = `Elect chooses one leader among processes that share a store, and runs a command
while it leads.`

// storesLong has what the kinds of stores say of themselves where the %s are.
const storesLong = `A store is named by a URL: in --store, or in ELECT_STORE.

URLs

%s
  Parameters follow after a "?", with a "&" between them. The directories of
  file: and sqlite: must be on a file system that is known to be local.
  filesystem=any accepts any other: use it only where one kernel alone mounts the
  file system.

The default

  Without a URL, the store is a directory for this user's processes: "elect" in
  $XDG_STATE_HOME, or else in .local/state of the home directory. It is the same for
  a login, cron and a service. elect run names it in its first line. If
  XDG_STATE_HOME is set for only some of them, name a directory:
  --store file:///directory.

TLS

  The parameters are cacert, cert, key, servername and insecure-skip-verify.

Databases

  The records are in the table "election", which is made when it is missing.
  table=NAME names another table.

expiry=observer

  By default the store judges whether a record is over. With expiry=observer the
  candidates do, each by its own clock. Then jumps of the store's clock change
  nothing, and TTLs may be short. All candidates of an election need the same
  setting. These stores have it: %s.

Parameters of each store

%s
Sharing a key with other locks

  Candidates can share a key with locks that are there already. elect doctor NAME
  tells which parameter they need:

    plain=true    the key has the value as it is, for programs that read it there
                  (etcd, consul, redis)
    layout=queue  for etcd: wait in line with the locks and elections of package
                  concurrency and etcdctl
    layout=claim  for etcd: claim the lock only while nobody is in that line
    layout=key    for etcd: the default
    suffix=/      for etcd: for locks whose own name ended with a slash

  etcd://host//locks has the prefix "/locks/". All candidates of an election need
  the same parameters.

Credentials

  Credentials stand before an @ in the URL: user:password@, or token@ for consul.
  Everybody on the host can read a command line (ps); run, watch and demo warn of
  that. Put the URL into ELECT_STORE instead, or put the credentials where the
  store's own tools look for them:

%s
  A command that elect run starts inherits only those in parentheses: see --pass-store
  in elect help run.`

// newStores is the topic of elect help stores. It has nothing to run.
func newStores() *cobra.Command {
	return &cobra.Command{
		Use:   "stores",
		Short: "URLs of stores, their parameters, TLS, credentials",
		Long:  fmt.Sprintf(storesLong, stores.Forms(), stores.Observed(), stores.Besides(), stores.Variables()),
	}
}

// newHelp is cobra's help command, but for two things: it completes topics too, and a word
// that is neither a command nor a topic is an error.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:                   "help [COMMAND or TOPIC]",
		DisableFlagsInUseLine: true,
		Short:                 "Print the help of a command, or of a topic: stores",
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			words := []string{}
			if of, _, err := cmd.Root().Find(args); err == nil {
				for _, c := range slices.Concat(commands(of), topics(of)) {
					words = append(words, cobra.CompletionWithDesc(c.Name(), c.Short))
				}
			}
			return words, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			of, rest, err := cmd.Root().Find(args)
			switch {
			case err != nil:
				return err
			case len(rest) > 0 && !of.HasParent():
				return noCommand(of, rest)
			}
			of.InitDefaultHelpFlag()
			of.InitDefaultVersionFlag()
			return of.Help()
		},
	}
}

// commands are those below cmd that a user may run.
func commands(cmd *cobra.Command) []*cobra.Command {
	return slices.DeleteFunc(slices.Clone(cmd.Commands()), func(c *cobra.Command) bool {
		return !c.IsAvailableCommand() && c.Name() != "help"
	})
}

// topics are those below cmd that have only a help text.
func topics(cmd *cobra.Command) []*cobra.Command {
	return slices.DeleteFunc(slices.Clone(cmd.Commands()), func(c *cobra.Command) bool {
		return !c.IsAdditionalHelpTopicCommand()
	})
}

// printRootHelp prints the help of elect itself.
func printRootHelp(out io.Writer, root *cobra.Command) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nCommands:\n", root.Long)
	for _, c := range commands(root) {
		fmt.Fprintf(&b, "  %-11s %s\n", c.Name(), c.Short)
	}
	fmt.Fprint(&b, "\nTopics:\n")
	for _, c := range topics(root) {
		fmt.Fprintf(&b, "  %-11s %s: see elect help %s\n", c.Name(), c.Short, c.Name())
	}
	fmt.Fprintf(&b, "\nExamples:\n%s\n", root.Example)
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.AddFlagSet(root.LocalFlags())
	flags.AddFlagSet(root.PersistentFlags())
	fmt.Fprintf(&b, "\nFlags:\n%s\n", flags.FlagUsages())
	fmt.Fprint(&b, "Exit status: 125 if elect itself fails. elect help COMMAND has the others, and more about COMMAND.\n")
	_, err := io.WriteString(out, b.String())
	return err
}
