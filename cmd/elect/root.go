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

// probeTime is how long a store is probed.
const probeTime = 5 * time.Second

// settings are the flags that all commands share.
type settings struct {
	stderr  *spool
	store   string
	level   string
	format  format // of the log
	verbose bool
}

func newRoot(s *settings) *cobra.Command {
	// What is wrong comes back as an error as well.
	redis.SetLogger(silence{})
	log.SetOutput(io.Discard) // net/http writes there
	root := &cobra.Command{
		Use:           "elect",
		Short:         "Choose one leader among processes",
		Long:          rootLong,
		Example:       rootExample,
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       thisBuild().String(),
		Args:          noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
	}
	root.SetFlagErrorFunc(flagError)
	root.SetVersionTemplate("{{.Version}}\n")
	flags := root.PersistentFlags()
	flags.StringVar(&s.store, "store", "", "`URL` of the store; see elect help stores (default $ELECT_STORE, else a directory of yours)")
	flags.StringVar(&s.level, "log-level", "info", "log debug, info, warn or error to standard error")
	s.format = asText
	flags.Var(&s.format, "log-format", "log as text or json")
	flags.BoolVarP(&s.verbose, "verbose", "v", false, "the same as --log-level debug")
	complete(root, "store", cobra.ShellCompDirectiveNoSpace|cobra.ShellCompDirectiveNoFileComp, stores.Beginnings()...)
	complete(root, "log-level", cobra.ShellCompDirectiveNoFileComp, "debug", "info", "warn", "error")
	complete(root, "log-format", cobra.ShellCompDirectiveNoFileComp, string(asText), string(asJSON))
	root.AddCommand(
		newWatch(s), newStatus(s), newHistory(s), newTop(s), newServe(s), newResign(s), newTransfer(s), newDoctor(s),
		newPeers(), newVersion(), newStores(), newManual(),
	)
	root.AddCommand(processCommands(s)...)
	root.SetHelpCommand(newHelp())
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if cmd.HasParent() {
			help(cmd, args)
			return
		}
		if err := printRootHelp(cmd.OutOrStdout(), cmd); err != nil {
			cmd.PrintErrln(err)
		}
	})
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
