//go:build unix

package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/electkv/election"
	"github.com/electkv/election/cmd/elect/internal/stores"
)

// statusHeld is that of elect run --try if somebody else leads, or keeps the election
// closed: EX_TEMPFAIL of sysexits.h. A promise: scripts and units depend on it.
const statusHeld = 75

// tickFlags are the flags of elect run for work that every host starts at one tick.
type tickFlags struct {
	try  bool
	hold time.Duration
}

func (f *tickFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.try, "try", false, "exit at once with status 75 if another candidate leads; implies --once")
	flags.DurationVar(&f.hold, "hold", 0, "keep the election closed for at least this long after COMMAND began")
	complete(cmd, "hold", cobra.ShellCompDirectiveNoFileComp)
}

// check refuses what cannot work in the store.
func (f *tickFlags) check(store *stores.Store) error {
	switch {
	case f.hold < 0:
		return fmt.Errorf("--hold %v is negative: leave it out for none", f.hold)
	case f.hold > 0 && store.Observed():
		return errors.New("--hold does not work with expiry=observer: a process that has just started cannot tell when a hold is over that it has not watched; leave expiry=observer out")
	case f.try && store.Observed():
		return errors.New("--try does not work with expiry=observer: a process that has just started cannot tell a dead leader from a live one; leave expiry=observer out, or --try")
	case f.try && store.Member():
		return errors.New("--try does not work for a member: one that has just started has to wait before it votes; leave this host out of the paxos URL, which makes it a client of members that run all the time")
	}
	return nil
}

// fill puts the flags into the options of a candidate.
func (f *tickFlags) fill(o *election.Options) { o.Hold = f.hold }

// set tells the runner.
func (f *tickFlags) set(r *runner) {
	r.try = f.try
	r.once = r.once || f.try
}

// attempt campaigns once, and leads if that succeeds.
func (r *runner) attempt() error {
	err := r.candidate.TryRun(r.ctx, r.lead)
	switch {
	case errors.Is(err, election.ErrHeld):
		r.log.Info("COMMAND is not run", "reason", oneLine(err))
		return exit{status: statusHeld}
	case errors.Is(err, errExpired):
		return exit{statusFailure, fmt.Errorf("%w; COMMAND was stopped", err)}
	}
	return err
}
