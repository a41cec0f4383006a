package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/electkv/election"
	"github.com/electkv/election/cmd/elect/internal/reserved"
	"github.com/electkv/election/cmd/elect/internal/stores"
	"github.com/electkv/election/internal/snapshot"
	"github.com/electkv/election/kv"
)

// moment is how long a request that was accepted waits for the next leader, which is
// mostly there before it is over.
const moment = 3 * time.Second

const resignLong = `Ask the leader of the election NAME to step down.

The leader stops its work: under elect run, COMMAND gets SIGTERM, and SIGKILL after
--grace. Then it hands the lease over to the heir, if there is one, or frees it for the
candidate that comes first, which may be the same one again. Elect prints who leads
next, or, after 3 s, that nobody does.

Leaders under elect run accept such a request. Leaders in other programs do so if they
have Options.Requests or a Succession.

Exit status: 0 if the leader has stepped down; 1 if there is no leader to ask
(nobody leads, or a foreign lock holds NAME); 125 if elect failed, the leader gave no
answer, or its work did not stop in time.`

const transferLong = `Ask the leader of the election NAME to hand over to the candidate --to.

The candidate must be waiting in the election, and neither it nor the leader may have
--succession none. If the candidate is not the heir, the leader makes it the heir
first. Then the leader stops its work: under elect run, COMMAND gets SIGTERM, and
SIGKILL after --grace. Elect prints a line when the candidate leads. If it leads
already, nothing happens. With --succession rank, the new leader gives way again to a
candidate of higher rank, after --stability.

A shell completes --to from the roster, if candidates keep one: elect run --roster.

Exit status: 0 if the candidate leads; 1 if nobody leads, a foreign lock holds NAME,
or the candidate is not there, in which case the leader leads on; 125 if elect failed,
the leader gave no answer, or its work did not stop in time.`

// A request is what a leader is asked for.
type request struct {
	*settings
	timeout time.Duration
	out     format
}

func newResign(s *settings) *cobra.Command {
	r := &request{settings: s}
	cmd := &cobra.Command{
		Use:               "resign [flags] NAME",
		Short:             "Ask the leader to step down",
		Long:              resignLong,
		Args:              oneElection("resign [flags] NAME"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.make(cmd, args[0], election.RequestResign)
		},
	}
	r.flags(cmd)
	return cmd
}

func newTransfer(s *settings) *cobra.Command {
	r := &request{settings: s}
	var to string
	cmd := &cobra.Command{
		Use:               "transfer [flags] NAME --to ID",
		Short:             "Ask the leader to hand over",
		Long:              transferLong,
		Example:           "  elect transfer nightly --to host-7",
		Args:              oneElection("transfer [flags] NAME --to ID"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			if to == "" {
				return errors.New("no ID to hand over to; use elect transfer [flags] NAME --to ID")
			}
			return r.make(cmd, args[0], func(ctx context.Context, store kv.Store, name string) error {
				return election.RequestTransfer(ctx, store, name, to)
			})
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "`id` of the candidate that is to lead next")
	if err := cmd.RegisterFlagCompletionFunc("to", s.successors); err != nil {
		panic(err) // there is no such flag
	}
	r.flags(cmd)
	return cmd
}

// completionTime is how long a shell waits for what it offers.
const completionTime = 2 * time.Second

// successors completes the ID of a candidate to which the leader can hand over, from the roster. Where
// that cannot be read it offers nothing.
func (s *settings) successors(_ *cobra.Command, args []string, _ string) (ids []cobra.Completion, how cobra.ShellCompDirective) {
	how = cobra.ShellCompDirectiveNoFileComp
	if len(args) != 1 {
		return nil, how
	}
	store, err := s.observe(io.Discard)
	if err != nil {
		return nil, how
	}
	defer store.Close()
	ctx, cancel := context.WithTimeout(context.Background(), completionTime)
	defer cancel()
	members, err := election.Members(ctx, store.KV, args[0])
	if err != nil {
		return nil, how
	}
	for _, m := range members {
		waits := m.Role == election.RoleHeir || m.Role == election.RoleCandidate
		if waits && printable(m.ID) == m.ID { // else a shell cannot take it
			ids = append(ids, cobra.CompletionWithDesc(m.ID, string(m.Role)))
		}
	}
	return ids, how
}

func (r *request) flags(cmd *cobra.Command) {
	outputFlag(cmd, &r.out)
	cmd.Flags().DurationVar(&r.timeout, "timeout", 30*time.Second, "give up after this long")
	complete(cmd, "timeout", cobra.ShellCompDirectiveNoFileComp)
}

// oneElection wants exactly one NAME, which is that of an election.
func oneElection(usage string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) == 0:
			return errors.New("no NAME; use elect " + usage)
		case len(args) > 1:
			return fmt.Errorf("more than one NAME: %q; use elect %s", args, usage)
		}
		return checkElection(args[0])
	}
}

// checkElection wants the name of an election.
func checkElection(name string) error {
	if of, purpose, ok := reserved.Election(name); ok {
		return fmt.Errorf("NAME %q is reserved for %s of %q: name the election itself", name, purpose, of)
	}
	return checkName(name)
}

// make asks, waits until what was asked for has come about, and prints who leads.
func (r *request) make(cmd *cobra.Command, name string, ask func(context.Context, kv.Store, string) error) error {
	if r.timeout <= 0 {
		return fmt.Errorf("--timeout %v is not positive", r.timeout)
	}
	store, err := r.open()
	if err != nil {
		return err
	}
	defer store.Close()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := probe(ctx, store, name); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeoutCause(ctx, r.timeout, fmt.Errorf("--timeout %v is over", r.timeout))
	defer cancel()
	if err := ask(bounded, store.KV, name); err != nil {
		return explain(ctx, store, name, err)
	}
	return r.show(bounded, store, name, cmd.OutOrStdout(), cmd.ErrOrStderr())
}

// explain adds to an error what helps to get on, and which exit status it means.
func explain(ctx context.Context, store *stores.Store, name string, err error) error {
	switch {
	case errors.Is(err, election.ErrNoLeader):
		return exit{statusNo, fmt.Errorf("nobody leads %s: there is nobody to ask", printable(name))}
	case errors.Is(err, election.ErrNoSuccession):
		return fmt.Errorf("the leader of %s has no heir, so it cannot hand over to a chosen candidate: leave out --succession none (library: Options.NoHeir), or where candidates wait in line with an old lock add --succession first, for every candidate", printable(name))
	case errors.Is(err, election.ErrHeld):
		return exit{statusNo, fmt.Errorf("%w; elect doctor %s tells what it looks like", err, printable(name))}
	case !errors.Is(err, election.ErrNoHeir):
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, probeTime, fmt.Errorf("no answer within %v", probeTime))
	defer cancel()
	// A call that was not answered has just taken the heir's place away: that nobody
	// is heir yet says nothing.
	if next, trouble := election.CurrentHeir(ctx, store.KV, name); trouble == nil {
		err = fmt.Errorf("%w; the heir is %q", err, next.ID)
	}
	return exit{statusNo, err}
}

// show prints who leads. What was asked for has come about: that it cannot be told
// who leads now is said, and no failure.
func (r *request) show(ctx context.Context, store *stores.Store, name string, out, log io.Writer) error {
	leader, err := next(ctx, store.KV, name)
	if err != nil && !errors.Is(err, election.ErrNoLeader) {
		fmt.Fprintf(log, "elect: it is done, but it cannot be told who leads now: %s\n", oneLine(err))
		return nil
	}
	s := snapshot.Of(name, leader, err)
	if r.out == asJSON {
		return jsonLine(out, s)
	}
	_, err = fmt.Fprintf(out, "%s: %s\n", printable(name), describe(s))
	return err
}

// next returns who leads as soon as somebody does, or after a moment ErrNoLeader.
func next(ctx context.Context, store kv.Store, name string) (leader election.Leader, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, moment, fmt.Errorf("no answer within %v", moment))
	defer cancel()
	vacant := false
	for leader, err = range election.Watch(ctx, store, name) {
		switch {
		case err == nil:
			return leader, nil
		case errors.Is(err, election.ErrNoLeader):
			vacant = true
		case vacant && ctx.Err() != nil:
			return election.Leader{}, election.ErrNoLeader
		}
	}
	return leader, err
}
