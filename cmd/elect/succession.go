//go:build unix

package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/electkv/election"
	"github.com/electkv/election/cmd/elect/internal/order"
)

// successionFlags are the flags of elect run that say who comes next.
type successionFlags struct {
	order              order.Name
	rank               int
	heirs              []string
	stability, maxTerm time.Duration
}

func (f *successionFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.Var(&f.order, "succession", "which candidate is next: none, first, rank, ring or list (default first; none where candidates wait in line with an old lock)")
	flags.IntVar(&f.rank, "rank", 0, "with --succession rank: a higher rank is preferred")
	flags.StringSliceVar(&f.heirs, "heirs", nil, "`ids` of the candidates that are next while this one leads, in order: a,b,c")
	flags.DurationVar(&f.stability, "stability", 0, "how long a preferred candidate must be the heir before the leader gives way (default three TTL)")
	flags.DurationVar(&f.maxTerm, "max-term", 0, "hand over after this long, if there is an heir (default never)")
	complete(cmd, "succession", cobra.ShellCompDirectiveNoFileComp, order.Names()...)
	for _, name := range []string{"rank", "heirs", "stability", "max-term"} {
		complete(cmd, name, cobra.ShellCompDirectiveNoFileComp)
	}
}

// trim takes the blanks off the ids of --heirs.
func (f *successionFlags) trim() {
	for i, id := range f.heirs {
		f.heirs[i] = strings.TrimSpace(id)
	}
}

// check refuses what would have no effect.
func (f *successionFlags) check(ttl time.Duration) error {
	none := f.order == order.None
	switch {
	case f.rank < 0:
		return fmt.Errorf("--rank %d is below zero; use elect watch for a process that never leads", f.rank)
	case f.rank > 0 && f.order != order.Rank:
		return fmt.Errorf("--rank %d has no effect without --succession rank: add that, or leave it out", f.rank)
	case len(f.heirs) > 0 && f.order != order.List:
		return errors.New("--heirs has no effect without --succession list: add that, or leave it out")
	case slices.Contains(f.heirs, ""):
		return errors.New("--heirs has an empty id in it; use --heirs a,b,c")
	case f.stability < 0:
		return fmt.Errorf("--stability %v is negative", f.stability)
	case f.stability > 0 && none:
		return errors.New("--stability has no effect with --succession none: use first, rank, ring or list")
	case f.maxTerm < 0:
		return fmt.Errorf("--max-term %v is negative", f.maxTerm)
	case f.maxTerm > 0 && none:
		return errors.New("--max-term needs an heir to hand over to: use it with --succession first, rank, ring or list")
	case f.maxTerm > 0 && f.maxTerm < ttl:
		return fmt.Errorf("--max-term %v is shorter than --ttl %v: use --max-term %v or more", f.maxTerm, ttl, ttl)
	}
	return nil
}

// fill puts the flags into the options of a candidate.
func (f *successionFlags) fill(o *election.Options) {
	o.Succession, o.NoHeir = f.order.Succession(), f.order == order.None
	o.Rank, o.Heirs = f.rank, f.heirs
	o.Stability, o.MaxTerm = f.stability, f.maxTerm
}
