//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/electkv/election"
	"github.com/electkv/election/cmd/elect/internal/guard"
	"github.com/electkv/election/cmd/elect/internal/stores"
)

const runLong = `Run COMMAND while leading the election NAME.

Elect waits until it is elected, runs COMMAND, and keeps the lease as long as COMMAND
runs. When leadership ends, COMMAND and all its descendants get SIGTERM, and SIGKILL
after --grace. The grace is counted back from the moment when the store may let another
candidate lead. So everything is dead before then, even if elect itself is killed or
stopped. Then elect campaigns again, unless --once is given.

This holds on Linux, for all descendants, daemons too. On other Unix systems only the
process group of COMMAND is stopped; and if the store is a directory and elect is killed,
another candidate may be elected before that.

When COMMAND ends by itself, elect stops what COMMAND left behind, frees the lease and
exits with COMMAND's status.

If elect is killed, its guard process stops COMMAND: SIGTERM, and SIGKILL after --grace.
On Linux, except with peers, it then frees the lease when all descendants are gone: the
next leader need not wait for the TTL. It still waits if SIGKILL was needed to stop them,
if --on-lost fails, if the guard or the host dies as well, and with --linger. (In a
directory the lease ends with the guard process.) Choose --linger if what COMMAND has
sent elsewhere may take effect after COMMAND is dead.

A process that a daemon starts for COMMAND (docker run, systemd-run, at, a job in a
cluster) is not a descendant of COMMAND, and runs on when COMMAND is dead. --on-lost names
a shell command that stops it. It runs when COMMAND is stopped, is killed or fails, but not
when COMMAND ends by itself with status 0. It has COMMAND's environment and the same
--grace, counted from the same moment, and is killed when that is over. It also runs
if elect is killed, but not if elect and its guard process, or the host, die at the same time:
what must never run twice has to check ELECTION_TOKEN.

COMMAND finds ELECTION_NAME, ELECTION_ID, ELECTION_TOKEN and ELECTION_TTL in its
environment. The token is a number that grows from leader to leader: pass it to
whatever must refuse an old leader. COMMAND does not find the store's secrets there:
ELECT_STORE and the variables that hold secrets of the store in use, which elect help
stores lists (as PGPASSWORD). With --pass-store it does. An elect in COMMAND that uses
the same store needs that, and so does a pg_dump with the same password. Variables that
name files stay.

If the store is down when elect starts, elect waits for it, as in any later outage;
the log says what is wrong. With --wait 0 elect gives up at once, with --wait 1m after a
minute. Elect ends at once if waiting cannot help: at a malformed URL, at credentials
that the server refuses, at a database that it does not have, or at a TTL that it does
not grant.

Without --ttl, the TTL is 15 s, or longer if --grace needs that, or the nearest TTL
that the store takes. Without --grace, the grace is a third of the TTL, but at
most 5 s. Values that you give are used as they are, or refused if they do not fit.

Succession: one of the waiting candidates is the heir, which leads next. A leader whose
term ends in good order hands over to the heir in one write, when COMMAND and all its
descendants are dead. --succession says which candidate is the heir:
  first  the candidate that came first: the default
  rank   the candidate with the highest --rank; a leader gives way to one of higher
         rank that has been the heir for --stability
  ring   the candidate after the leader in the order of ids; with --max-term the
         leadership goes round
  list   the first of the leader's --heirs that is there, else as with first
  none   there is no heir: the first candidate that comes when the lease is free leads.
         It is the default in an etcd with layout=queue, where candidates wait in line
         already. Choose it where elect may write nothing beside the lease (an heir
         has a record at the election's name with :heir)
Give all candidates of an election the same order. elect resign asks the leader to
step down, with or without an heir; elect transfer asks it to hand over to another
candidate.

With --roster elect keeps a record of its own beside the election, for as long as it runs,
so that elect serve, elect top and elect status -o json list it. The stores of etcd, Consul and
Redis can do that. The record is at NAME:roster:KEY (in Redis {NAME}:election-roster:KEY), with
another KEY each time. A leader sends no request for it; a candidate that waits sends about two
per TTL. COMMAND never depends on it.

Once per tick: cron and timers start the same job on every host. Plain elect run then
runs it once per host, one after the other.
  --try     does not wait: if another candidate leads, elect exits with status 75
            and does not run COMMAND. If leadership is lost, elect exits.
  --hold D  keeps the election closed to all with --hold for at least D after COMMAND began,
            even if COMMAND ended sooner, and even if elect or its host is gone. A
            candidate that comes meanwhile waits or, with --try, exits. Choose D longer
            than the clocks of the hosts differ, and shorter than the time between two
            ticks; with Consul, shorter than half of that. A candidate without --hold
            is not kept out.
docs/run/cron.md has more.

Answers over HTTP: with --http elect answers what it is, to GET, HEAD and OPTIONS.
  /leader    200 while it leads, else 503
  /heir      200 while it is the heir
  /standby   200 while it waits to lead
  /livez     503 if COMMAND runs on although another may lead: kill it
  /readyz    200 if the store has answered within the TTL; with ?leader, if it leads too
  /          {"name": ID} of the leader
  /status    the JSON of elect status -o json, and self: what this elect is
  /history   the last terms, as elect history has them
  /events    server-sent events of what changes
Every program that reaches the address may ask. POST /resign and POST /transfer?to=ID need the
token in --http-token-file, as "Authorization: Bearer TOKEN". /resign is for an elect
that leads; with ?any it asks whichever leads.

With --http, COMMAND may be left out. A service that elect does not start then asks
/leader all the time, and works while the answer is 200. When a term ends the answer is
503 at once, and the next candidate leads no sooner than --grace later. Within --grace
the service must have asked again and stopped: a missing answer is a no. elect cannot
kill it: what must never run twice has to check the token, which is in the answer.

Signals: elect passes SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM,
SIGCONT and SIGWINCH on to COMMAND's process group. After SIGINT or SIGTERM elect
waits for COMMAND to end, for as long as it takes, frees the lease and exits with
COMMAND's status. After the second one, COMMAND gets SIGTERM, and SIGKILL after
--grace. Before COMMAND runs, SIGHUP, SIGINT, SIGQUIT and SIGTERM end the wait.

If standard input is the terminal and elect is in its foreground, COMMAND gets the
foreground: it can read, and Ctrl-C goes to it alone. It cannot be suspended.

Exit status:
  COMMAND's own, or 128 + the number of the signal that killed it
  128 + n  signal n ended the wait
  75       with --try: another candidate leads, or a hold keeps the election closed
  125      elect failed, or, with --once or --try, leadership was lost, not given up
  126      COMMAND cannot be executed
  127      COMMAND was not found`

const runExample = `  elect run --try --hold 50m nightly -- ./report.sh --all
  elect run billing -- ./billing-daemon
  elect run --store etcd://localhost:2379/jobs --ttl 10s --grace 2s nightly -- ./report.sh
  elect run --succession rank --rank 10 nightly -- ./report.sh
  elect run --on-lost 'docker rm -f report' nightly -- docker run --rm --name report report
  elect run --http 127.0.0.1:4040 billing`

// runFlags are the flags of elect run.
type runFlags struct {
	*settings
	successionFlags
	id, value  string
	ttl, grace time.Duration
	wait       time.Duration
	once       bool
	onLost     string
	passStore  bool
	roster     bool
	linger     bool
	tick       tickFlags
	web        webFlags

	given func(flag string) bool // whether the user said it
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
	f.given = flags.Changed
	flags.StringVar(&f.id, "id", "", "the name that others see (default host name and process id)")
	flags.StringVar(&f.value, "value", "", "text that is published with the id, such as an address")
	flags.DurationVar(&f.ttl, "ttl", usualTTL, "how long a leader that died keeps others out")
	flags.DurationVar(&f.grace, "grace", usualGrace, "time from SIGTERM to SIGKILL when leadership ends")
	flags.DurationVar(&f.wait, "wait", 0, "how long to wait at the start for a store that cannot be used; 0: give up at once")
	flags.BoolVar(&f.passStore, "pass-store", false, "leave the store's URL and credentials in COMMAND's environment")
	said(flags, "ttl", usualTTLText+" and --grace")
	said(flags, "grace", "a third of the TTL, at most 5s")
	said(flags, "wait", "as long as it takes; with --try, 0")
	flags.BoolVar(&f.linger, "linger", false, "if elect is killed, keep others out for the rest of the TTL")
	flags.BoolVar(&f.roster, "roster", false, "list this candidate for elect status, serve and top, from now until elect ends")
	flags.BoolVar(&f.once, "once", false, "exit at the end of a term instead of campaigning again")
	f.add(cmd)
	f.tick.add(cmd)
	f.web.add(cmd)
	flags.StringVar(&f.onLost, "on-lost", "", "shell `command` that stops what COMMAND started elsewhere; it runs when COMMAND is stopped or fails")
	for _, name := range []string{"id", "value", "ttl", "grace", "wait", "on-lost"} {
		complete(cmd, name, cobra.ShellCompDirectiveNoFileComp)
	}
	cmd.SetFlagErrorFunc(runFlagError)
	return cmd
}

// runFlagError tells those who forgot the -- where flags of COMMAND belong.
func runFlagError(cmd *cobra.Command, err error) error {
	_, unknown := errors.AsType[*pflag.NotExistError](err)
	if err = flagError(cmd, err); unknown {
		return fmt.Errorf("%w; flags of COMMAND come after --", err)
	}
	return err
}

func runArgs(cmd *cobra.Command, args []string) error {
	const usage = "use elect run [flags] NAME -- COMMAND [ARG...]"
	switch dash := cmd.ArgsLenAtDash(); {
	case dash < 0 && len(args) == 1 && cmd.Flags().Changed("http"):
		return nil // those that ask over HTTP do the work
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
	path, err := f.checkCommand(command)
	if err != nil {
		return err
	}
	if err := f.checkSigns(); err != nil {
		return err
	}
	parent, err := guard.Adopt()
	if err != nil {
		return err
	}
	defer parent.Close()
	f.trim()
	if f.id == "" {
		f.id = defaultID()
	}
	url, err := f.url(stores.Default)
	if err != nil {
		return err
	}
	address, err := stores.Parse(url, os.Getenv)
	if err != nil {
		return err
	}
	f.warn(address, log)
	web, err := f.web.serve(log)
	if err != nil {
		return err
	}
	defer web.stop()
	r := newRunner(f, name, log)
	if r.bequests, err = f.bequeaths(address, url); err != nil {
		return err
	}
	f.tick.set(r)
	stop := r.listen()
	defer stop()
	p := f.patience(address, log)
	store, err := p.open(r.ctx)
	if err != nil {
		return r.verdict(err)
	}
	defer store.Close()
	if r.candidate, err = f.candidate(store, name, log); err != nil {
		return err
	}
	r.parent, r.store, r.ttl = parent, store, f.ttl
	r.spec = guard.Spec{Path: path, Args: command, Grace: f.grace, Patience: reserve(f.ttl) / 2, OnLost: f.onLost}
	return r.answering(web, func() error {
		if err := p.reach(r.ctx, store, name); err != nil {
			return r.verdict(err)
		}
		return r.run()
	})
}

// candidate settles the durations that are left open by what the store takes, and
// returns the candidate.
func (f *runFlags) candidate(store *stores.Store, name string, log *slog.Logger) (*election.Candidate, error) {
	margin, err := f.settle(taken(store.KV))
	if err != nil {
		return nil, err
	}
	if err := f.check(f.ttl); err != nil {
		return nil, err
	}
	if store.Alone() {
		log.Warn("no other process sees this store: COMMAND runs wherever it is started", "store", store.Address)
	}
	options := election.Options{ID: f.id, Value: f.value, TTL: f.ttl, Margin: margin, Logger: log, Requests: true}
	f.fill(&options)
	if err := f.tick.check(store); err != nil {
		return nil, err
	}
	f.tick.fill(&options)
	options.Roster = f.roster
	return election.New(store.KV, name, &options)
}

// checkSigns refuses durations that mean nothing.
func (f *runFlags) checkSigns() error {
	switch {
	case f.ttl <= 0:
		return fmt.Errorf("--ttl %v is not positive", f.ttl)
	case f.grace < 0:
		return fmt.Errorf("--grace %v is negative", f.grace)
	case f.wait < 0:
		return fmt.Errorf("--wait %v is negative: leave it out to wait for as long as it takes", f.wait)
	case f.roster && f.tick.try:
		return errors.New("--roster lists a candidate that waits, and --try does not wait: leave one of them out")
	}
	return nil
}

// checkCommand returns the path of COMMAND, empty if there is none. It refuses a command of
// --on-lost that cannot do anything.
func (f *runFlags) checkCommand(command []string) (path string, err error) {
	switch {
	case len(command) > 0:
		path, err = find(command[0])
	case f.onLost != "":
		err = errors.New("--on-lost stops what COMMAND started, and there is no COMMAND: leave it out")
	}
	if err != nil || f.onLost == "" {
		return path, err
	}
	if f.given("grace") && f.grace == 0 {
		return "", errors.New("--on-lost has the time that --grace gives, and --grace 0 gives none: use a grace in which it can end")
	}
	_, err = find(guard.Shell)
	return path, err
}

// settle chooses the TTL and the grace if no flag does: values that fit each other,
// and the store. It returns how long before the store may let another lead the term
// ends: COMMAND gets its grace, and the kernel and the clocks what they need.
func (f *runFlags) settle(takes func(time.Duration) bool) (margin time.Duration, err error) {
	if !f.given("grace") {
		f.grace = 0
	}
	if !f.given("ttl") {
		f.ttl = nearestTTL(max(usualTTL, ttlFor(f.grace)), takes)
	}
	if !f.given("grace") {
		f.grace = graceFor(f.ttl)
	}
	spare, fits := spare(f.ttl), leastTTL(ttlFor(f.grace), takes)
	switch {
	case spare < 0:
		return 0, fmt.Errorf("--ttl %v is too short: COMMAND must be dead before another can lead; use --ttl %v or more", f.ttl, fits)
	case f.grace > spare:
		return 0, fmt.Errorf("--grace %v does not fit --ttl %v: COMMAND must be dead before another can lead; use --grace %v or less, or --ttl %v or more",
			f.grace, f.ttl, spare.Truncate(10*time.Millisecond), fits)
	}
	return f.grace + reserve(f.ttl), nil
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

// answering does something while those who ask over HTTP are answered what the candidate is.
func (r *runner) answering(w *web, do func() error) error {
	if err := w.speak(r.candidate, r.store.KV); err != nil {
		return err
	}
	defer w.stop() // before the store is closed
	return do()
}

// run campaigns and leads until COMMAND has ended by itself, or a signal or a
// loss says so.
func (r *runner) run() error {
	r.log.Info("standing for election", "election", r.name, "store", r.store.Address, "version", version())
	if r.former != "" {
		r.log.Warn("the default store has moved: candidates of earlier versions do not meet this one", "former", r.former)
	}
	if r.try {
		return r.verdict(r.attempt())
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
