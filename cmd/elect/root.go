package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/electkv/election/cmd/elect/internal/stores"
	"github.com/electkv/election/kv"
)

// The probe of a store ends after this long.
const probeTime = 5 * time.Second

// settings are the flags that all commands share.
type settings struct {
	stderr  *spool
	store   string
	level   string
	format  format // of the log
	verbose bool
}

// rootLong has the forms of URLs where the %s is.
const rootLong = `Elect chooses one leader among processes that share a store.

Stores (--store, or ELECT_STORE):

%s
Without --store the store is a directory for this user's processes: "elect" in
$XDG_STATE_HOME, else in .local/state of the home directory, the same for a login,
cron and a service. elect run names it in its first line. If XDG_STATE_HOME is set
for some of them only, name a directory: --store file:///directory.

Directories for file: and sqlite: have to be on a file system that is known to be
local. filesystem=any insists on another: where one kernel alone mounts it.

Parameters for TLS: cacert, cert, key, servername, insecure-skip-verify. For
consul: dc, namespace, partition, and min-ttl, the servers' session_ttl_min. For
redis: prefix, sentinel-user, and quarantine, how long a server that was restarted
or promoted keeps elections closed: all need the same.

In a database the records are in the table "election", which is made when it is
missing; table=NAME and, for postgres, schema=NAME say where else. For postgres there
are sslmode, sslrootcert, sslcert, sslkey, target_session_attrs, application_name and
default_query_exec_mode as libpq and pgx have them; for mysql tls=true, and the
parameters for TLS.

expiry=observer has the candidates judge, each by its own clock, whether a record is
over, not the store: for etcd, consul, redis, sqlite, postgres and mysql. Jumps of the
store's clock change nothing then, and TTLs may be short. All candidates of an
election need the same.

For paxos, each elect run is a member, which the host names: the others reach it
there. peers=host:port,host:port are all members (three, or five), and cluster is a
name that they share. cert, key and cacert (or ELECT_CERT, ELECT_KEY, ELECT_CACERT)
are needed always: docs/peers.md has the commands that make them. dir=DIRECTORY keeps
on disk which tokens were given out; founding=true leaves out the quarantine at the
very first start, with dir; max-ttl (1m), round (1s) and drift (5, in thousandths)
must be the same at all members; listen=host:port, if it is not the own address. Other
commands than run ask the members, from anywhere: the host may be left out. So may run:
then it is a candidate that has no vote.

To share a key with locks that are there already (elect doctor NAME tells which):
plain=true puts the value at the key as it is, for programs that read it there,
for etcd, consul and redis. For etcd, layout=queue stands in line with the locks
and elections of package concurrency and etcdctl, layout=claim takes an empty line
only, layout=key is the default; etcd://host//locks has the prefix "/locks/", and
suffix=/ is for locks whose own name ended with a slash. All candidates of an
election need the same.

Credentials stand before an @ in the URL (user:password@, for consul token@). On a
command line everybody on the host can read them (ps): run, watch and demo warn of
that. Put the URL into ELECT_STORE instead, or the credentials where the store's own
tools look for them: ETCDCTL_USER, _PASSWORD, _CACERT, _CERT, _KEY, _ENDPOINTS;
CONSUL_HTTP_TOKEN, _TOKEN_FILE, _ADDR, CONSUL_CACERT and so on; REDISCLI_AUTH,
REDISCLI_SENTINEL_AUTH; PGPASSWORD, PGPASSFILE, PGSSLMODE and all of libpq's;
MYSQL_PWD. What elect run starts does not inherit the secrets among them: see
elect help run, --pass-store.

Exit status: 125 if elect itself fails; see each command for the others.`

func newRoot(s *settings) *cobra.Command {
	// What is wrong comes back as an error as well.
	redis.SetLogger(silence{})
	log.SetOutput(io.Discard) // net/http writes there
	root := &cobra.Command{
		Use:           "elect",
		Short:         "Choose one leader among processes",
		Long:          fmt.Sprintf(rootLong, stores.Help()),
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       version(),
		Args:          noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
	}
	root.SetFlagErrorFunc(flagError)
	root.SetVersionTemplate("{{.Version}}\n")
	flags := root.PersistentFlags()
	flags.StringVar(&s.store, "store", "", "`URL` of the store; see elect --help (default $ELECT_STORE, else a directory of yours)")
	flags.StringVar(&s.level, "log-level", "info", "log debug, info, warn or error to standard error")
	s.format = asText
	flags.Var(&s.format, "log-format", "log as text or json")
	flags.BoolVarP(&s.verbose, "verbose", "v", false, "the same as --log-level debug")
	complete(root, "store", cobra.ShellCompDirectiveNoSpace|cobra.ShellCompDirectiveNoFileComp, stores.Beginnings()...)
	complete(root, "log-level", cobra.ShellCompDirectiveNoFileComp, "debug", "info", "warn", "error")
	complete(root, "log-format", cobra.ShellCompDirectiveNoFileComp, string(asText), string(asJSON))
	root.AddCommand(newWatch(s), newStatus(s), newResign(s), newTransfer(s), newDoctor(s), newVersion())
	root.AddCommand(processCommands(s)...)
	return root
}

// noCommand refuses words that are no command.
func noCommand(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("unknown command %q for %q%s", args[0], root.CommandPath(), meantCommand(root, args[0]))
}

// flagError says how a value is written that was not understood, and which flag may
// have been meant.
func flagError(cmd *cobra.Command, err error) error {
	if !cmd.HasParent() && cmd.Flags().NArg() > 0 { // the flag may well be that command's
		return noCommand(cmd, cmd.Flags().Args())
	}
	if wrong, ok := errors.AsType[*pflag.NotExistError](err); ok {
		return fmt.Errorf("%w%s", err, meantFlag(cmd, wrong))
	}
	if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok && wrong.GetFlag().Value.Type() == "duration" {
		return fmt.Errorf("--%s %q is not a duration, such as 1m30s or 500ms", wrong.GetFlag().Name, wrong.GetValue())
	}
	return err
}

// silence is a log of the Redis client that nobody reads.
type silence struct{}

// Printf drops the line.
func (silence) Printf(context.Context, string, ...any) {}

// complete sets what a shell offers for a flag.
func complete(cmd *cobra.Command, flag string, how cobra.ShellCompDirective, values ...string) {
	err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, how))
	if err != nil {
		panic(err) // there is no such flag
	}
}

// url returns the URL of the store: from the flag, the environment, or the
// default.
func (s *settings) url(byDefault func(getenv func(string) string) (string, error)) (string, error) {
	if s.store != "" {
		return s.store, nil
	}
	if env := os.Getenv(stores.Variable); env != "" {
		return env, nil
	}
	if os.Getenv(storeVariable) == withheld {
		return "", errors.New("this runs under elect run, which keeps the URL of its store to itself: name a store with --store, or start that elect run with --pass-store")
	}
	return byDefault(os.Getenv)
}

// address checks the URL of the store.
func (s *settings) address(byDefault func(getenv func(string) string) (string, error)) (*stores.Address, error) {
	url, err := s.url(byDefault)
	if err != nil {
		return nil, err
	}
	return stores.Parse(url, os.Getenv)
}

// open checks the URL of the store and opens it.
func (s *settings) open() (*stores.Store, error) {
	return s.opened(stores.Default, (*stores.Address).Open)
}

// observe opens the store for a command that only reads, and says on log where there is
// nothing to read yet.
func (s *settings) observe(log io.Writer) (*stores.Store, error) {
	store, err := s.opened(stores.DefaultToRead, (*stores.Address).Observe)
	if err == nil {
		if absent := store.Absent(); absent != "" {
			fmt.Fprintf(log, "elect: %s\n", absent)
		}
	}
	return store, err
}

func (s *settings) opened(byDefault func(func(string) string) (string, error), how func(*stores.Address) (*stores.Store, error)) (*stores.Store, error) {
	address, err := s.address(byDefault)
	if err != nil {
		return nil, err
	}
	store, err := how(address)
	if err != nil {
		return nil, fmt.Errorf("store %w", err)
	}
	return store, nil
}

// named reports whether the user has said which store to use.
func (s *settings) named() bool { return s.store != "" || os.Getenv(stores.Variable) != "" }

// former returns where the default store was before, if others may still be there, and
// this command is in the default store.
func (s *settings) former() string {
	if s.named() {
		return ""
	}
	return stores.FormerDefault(os.Getenv)
}

// probe reads a safe once, so that a store that cannot be used is known before
// anybody waits for it. Candidates that are the store themselves have to wait for
// each other.
func probe(ctx context.Context, store *stores.Store, name string) error {
	return probeWithin(ctx, probeTime, store, name)
}

func probeWithin(ctx context.Context, limit time.Duration, store *stores.Store, name string) error {
	if store.Member() {
		return nil
	}
	bounded, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %v", limit.Round(time.Millisecond)))
	defer cancel()
	err := store.Check(bounded)
	if err == nil {
		_, err = store.KV.Get(bounded, name)
	}
	switch late := context.Cause(bounded); {
	case err == nil || errors.Is(err, kv.ErrVacant):
		return nil
	case late != nil && !errors.Is(err, late): // some clients only say that time is up
		err = fmt.Errorf("%w: %w", late, err)
	}
	if hint := store.Hint(ctx, bounded.Err() != nil); ctx.Err() == nil && hint != "" {
		err = fmt.Errorf("%w; %s", err, hint)
	}
	return fmt.Errorf("store %v cannot be used: %w", store.Address, err)
}

// logger returns the log that the flags ask for.
func (s *settings) logger() (*slog.Logger, error) {
	var level slog.Level
	switch strings.ToLower(s.level) {
	case "debug", "info", "warn", "error":
		if err := level.UnmarshalText([]byte(s.level)); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("--log-level %q: use debug, info, warn or error", s.level)
	}
	if s.verbose {
		level = slog.LevelDebug
	}
	if s.format == asJSON {
		s.stderr.speakJSON()
		return slog.New(newJSONHandler(s.stderr, level)), nil
	}
	return slog.New(newLineHandler(s.stderr, level)), nil
}
