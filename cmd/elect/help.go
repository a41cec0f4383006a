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

// storesLong has the forms of URLs where the %s is.
const storesLong = `A store is named by a URL: in --store, or in ELECT_STORE.

URLs

%s
  Parameters follow after a "?", with a "&" between them. consul has dc, namespace,
  partition and min-ttl, which is the servers' session_ttl_min. redis has prefix,
  sentinel-user and quarantine: how long a server that was restarted or promoted
  keeps elections closed. All candidates of an election need the same quarantine.

  The directories of file: and sqlite: must be on a file system that is known to be
  local. filesystem=any accepts any other: use it only where one kernel alone mounts
  the file system.

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
  table=NAME names another table, and, for postgres, schema=NAME names its schema.
  postgres takes sslmode, sslrootcert, sslcert, sslkey, target_session_attrs,
  application_name and default_query_exec_mode, as libpq and pgx do. mysql takes
  tls=true, and the parameters for TLS.

expiry=observer

  By default the store judges whether a record is over. With expiry=observer the
  candidates do, each by its own clock. Then jumps of the store's clock change
  nothing, and TTLs may be short. etcd, consul, redis, sqlite, postgres and mysql
  have it. All candidates of an election need the same setting.

PaxosLease

  With paxos the candidates are the store: each elect run is a member. The host in
  its URL is the address at which the other members reach it.

    peers=host:port,host:port  all members: three, or five
    cluster=NAME               a name that they share
    cert, key, cacert          are always needed, here or in ELECT_CERT, ELECT_KEY and
                               ELECT_CACERT; elect peers init makes them. The key
                               may be in the file of cert. Members take new files
                               without a restart
    dir=DIRECTORY              keeps on disk which tokens were given out
    founding=true              leaves out the quarantine at the very first start;
                               it needs dir
    listen=host:port           where to listen, if not at the member's own address
    max-ttl, round, drift      must be the same at all members; the defaults are 1m,
                               1s and 5 (thousandths)

  The other commands ask the members, from anywhere, and need no host in the URL.
  An elect run without one is a candidate that has no vote.

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

    etcd      ETCDCTL_USER, _PASSWORD, _CACERT, _CERT, _KEY, _ENDPOINTS
    consul    CONSUL_HTTP_TOKEN, _TOKEN_FILE, _ADDR, CONSUL_CACERT and so on
    redis     REDISCLI_AUTH, REDISCLI_SENTINEL_AUTH
    postgres  PGPASSWORD, PGPASSFILE, PGSSLMODE and all others of libpq
    mysql     MYSQL_PWD

  A command that elect run starts does not inherit the secrets among these variables:
  see --pass-store in elect help run.`

// newStores is the topic of elect help stores. It has nothing to run.
func newStores() *cobra.Command {
	return &cobra.Command{
		Use:   "stores",
		Short: "URLs of stores, their parameters, TLS, credentials",
		Long:  fmt.Sprintf(storesLong, stores.Help()),
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
