//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/electkv/election"
	"github.com/electkv/election/cmd/elect/internal/guard"
)

const runLong = `Run COMMAND while leading the election NAME.

Elect waits until it is elected, runs COMMAND, and keeps the lease as long as it
runs. When leadership ends, COMMAND and all processes that came of it get
SIGTERM, and SIGKILL after --grace. Grace counts back from the moment when the
store may let another one lead, so everything is dead before, even if elect
itself is killed or stopped. (Linux: all descendants, also daemons. Elsewhere:
the process group.) Then elect campaigns again, unless --once is given.

When COMMAND ends by itself, elect stops what it left behind, frees the lease and
exits with its status.

COMMAND finds in its environment ELECTION_NAME, ELECTION_ID, ELECTION_TOKEN (a
number that grows from leader to leader: hand it to whatever must refuse an old
one) and ELECTION_TTL.

Succession: with --succession one of the candidates that wait is the heir. It is
next, and a leader whose term ends in good order hands over to it in one write, when
COMMAND and all that came of it are dead. Who is heir?
  first  who came first
  rank   the highest --rank; a leader gives way to a higher one that has been heir
         for --stability
  ring   who follows the leader in the order of ids; with --max-term the leadership
         goes round
  line   the first of the leader's --heirs who is there, then who came first
Give all candidates of an election the same. elect resign asks the leader to step
down, with or without a succession; elect transfer asks it to hand over to another.

Signals: SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGCONT and
SIGWINCH are passed on to COMMAND's process group. After SIGINT or SIGTERM elect
waits for COMMAND to end, for as long as it takes, frees the lease and exits with
COMMAND's status; the second one means SIGTERM, and SIGKILL after --grace. Before
COMMAND runs, SIGHUP, SIGINT, SIGQUIT and SIGTERM end the wait.

If standard input is the terminal and elect in its foreground, COMMAND gets the
foreground: it can read, and Ctrl-C goes to it alone. It cannot be suspended.

Exit status:
  COMMAND's own, or 128 + the number of the signal that killed it
  128 + n  signal n ended the wait
  125      elect failed, or, with --once, leadership was lost, not given up
  126      COMMAND cannot be executed
  127      COMMAND was not found`

const runExample = `  elect run nightly -- ./report.sh --all
  elect run --store etcd://localhost:2379/jobs --ttl 10s --grace 2s nightly -- ./report.sh
  elect run --succession rank --rank 10 nightly -- ./report.sh`

// runFlags are the flags of elect run.
type runFlags struct {
	*settings
	successionFlags
	id, value  string
	ttl, grace time.Duration
	once       bool
}

func newRun(s *settings) *cobra.Command {
	f := &runFlags{settings: s}
	cmd := &cobra.Command{
		Use:                   "run [flags] NAME -- COMMAND [ARG...]",
		Short:                 "Run a command while leading",
		Long:                  runLong,
		Example:               runExample,
		DisableFlagsInUseLine: true,
		Args:                  runArgs,
		ValidArgsFunction:     cobra.NoFileCompletions,
		RunE: func(_ *cobra.Command, args []string) error {
			return f.run(args[0], args[1:])
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.id, "id", "", "how others see this candidate (default host name and process id)")
	flags.StringVar(&f.value, "value", "", "published with the id, e.g. an address")
	flags.DurationVar(&f.ttl, "ttl", 15*time.Second, "how long a leader that died keeps others out")
	flags.DurationVar(&f.grace, "grace", 5*time.Second, "from SIGTERM to SIGKILL when leadership ends")
	flags.BoolVar(&f.once, "once", false, "exit at the end of a term instead of campaigning again")
	f.add(cmd)
	for _, name := range []string{"id", "value", "ttl", "grace"} {
		complete(cmd, name, cobra.ShellCompDirectiveNoFileComp)
	}
	cmd.SetFlagErrorFunc(runFlagError)
	return cmd
}

// runFlagError tells those who forgot the -- where flags of COMMAND belong.
func runFlagError(cmd *cobra.Command, err error) error {
	if _, unknown := errors.AsType[*pflag.NotExistError](err); unknown {
		return fmt.Errorf("%w; flags of COMMAND come after --", err)
	}
	return flagError(cmd, err)
}

func runArgs(cmd *cobra.Command, args []string) error {
	const usage = "use elect run [flags] NAME -- COMMAND [ARG...]"
	switch dash := cmd.ArgsLenAtDash(); {
	case len(args) == 0 || dash == 0:
		return errors.New("no NAME; " + usage)
	case dash < 0 && len(args) == 1, dash == len(args):
		return errors.New("no COMMAND; " + usage)
	case dash < 0:
		return errors.New("no -- before COMMAND; " + usage)
	case dash > 1:
		return fmt.Errorf("more than one NAME: %q; %s", args[:dash], usage)
	}
	return nil
}

func (f *runFlags) run(name string, command []string) error {
	log, err := f.logger()
	if err != nil {
		return err
	}
	path, err := find(command[0])
	if err != nil {
		return err
	}
	margin, err := f.margin()
	if err != nil {
		return err
	}
	f.trim()
	if err := f.check(f.ttl); err != nil {
		return err
	}
	if f.id == "" {
		f.id = defaultID()
	}
	store, err := f.join(log)
	if err != nil {
		return err
	}
	defer store.Close()
	if store.Address.Kind == "mem" {
		log.Warn("no other process sees this store: COMMAND runs wherever it is started", "store", store.Address)
	}
	options := election.Options{ID: f.id, Value: f.value, TTL: f.ttl, Margin: margin, Logger: log, Requests: true}
	f.fill(&options)
	candidate, err := election.New(store.KV, name, &options)
	if err != nil {
		return err
	}
	if err := guard.Adopt(); err != nil {
		return err
	}
	r := newRunner(f, name, candidate, store, log)
	r.spec = guard.Spec{Path: path, Args: command, Grace: f.grace}
	return r.run()
}

// margin returns how long before the store may let another in the term ends:
// COMMAND gets its grace, and the kernel and the clocks what they need.
func (f *runFlags) margin() (time.Duration, error) {
	switch {
	case f.ttl <= 0:
		return 0, fmt.Errorf("--ttl %v is not positive", f.ttl)
	case f.grace < 0:
		return 0, fmt.Errorf("--grace %v is negative", f.grace)
	}
	if spare := spare(f.ttl); f.grace > spare {
		hint := fmt.Sprintf("use --ttl %v or more", ttlFor(f.grace))
		if spare >= 0 {
			hint = fmt.Sprintf("use --grace %v or less, or --ttl %v or more", spare.Truncate(10*time.Millisecond), ttlFor(f.grace))
		}
		return 0, fmt.Errorf("--grace %v does not fit --ttl %v: COMMAND must be dead before another can lead; %s", f.grace, f.ttl, hint)
	}
	return f.grace + reserve(f.ttl), nil
}

// reserve is what it takes from SIGKILL to the last process gone, and what
// clocks of different rates take.
func reserve(ttl time.Duration) time.Duration {
	return max(ttl/10, ttl/50+200*time.Millisecond)
}

// spare is the longest grace that a TTL has room for: at least a third of it
// must be left to lead.
func spare(ttl time.Duration) time.Duration {
	return ttl - ttl/3 - reserve(ttl)
}

// ttlFor returns the shortest TTL, in tenths of a second, with room for a grace.
func ttlFor(grace time.Duration) time.Duration {
	ttl := (grace + grace/2).Truncate(100 * time.Millisecond)
	for spare(ttl) < grace {
		ttl += 100 * time.Millisecond
	}
	return ttl
}

// find returns the path of the command, as env(1) would find it.
func find(command string) (string, error) {
	path, err := exec.LookPath(command)
	switch {
	case err == nil || errors.Is(err, exec.ErrDot):
		return path, nil
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, fs.ErrNotExist):
		return "", exit{statusNotFound, fmt.Errorf("%s: command not found", command)}
	}
	return "", exit{statusNotExec, fmt.Errorf("%s: cannot be executed: %w", command, reason(err))}
}

// reason returns the cause of a failed look-up, without its text around.
func reason(err error) error {
	if e := (*exec.Error)(nil); errors.As(err, &e) {
		err = e.Err
	}
	if e := (*fs.PathError)(nil); errors.As(err, &e) {
		err = e.Err
	}
	return err
}

func defaultID() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s-%d", host, os.Getpid())
}

// run campaigns and leads until COMMAND has ended by itself, or a signal or a
// loss says so.
func (r *runner) run() error {
	stop := r.listen()
	defer stop()
	if err := probe(r.ctx, r.store, r.name); err != nil {
		return r.verdict(err)
	}
	for {
		err := r.candidate.Run(r.ctx, r.lead)
		if !errors.Is(err, errExpired) {
			return r.verdict(err)
		}
	}
}

// verdict is how elect ends.
func (r *runner) verdict(err error) error {
	var ended exit
	switch {
	case r.ended != nil:
		return r.ended
	case errors.As(context.Cause(r.ctx), &ended):
		return ended
	}
	return err
}
