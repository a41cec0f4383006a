package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/electkv/election"
	"github.com/electkv/election/cmd/elect/internal/stores"
	"github.com/electkv/election/internal/snapshot"
)

const statusLong = `Print who leads each election NAME at the moment.

With -o json each line is an object with time, name, id, value, token and state. The
state is "leader", "vacant" or, for a lock that another program wrote, "foreign".

The leader's age compares the clocks of two hosts. Where there is a succession, the
output also has the leader's rank, the heir, which leads next, and the heirs: the
candidates that the leader's --heirs name, whether they are there or not. JSON has
since, rank, heir (with id, value, rank and since) and heirs, as far as they are known.

Where candidates keep a roster (elect run --roster), MEMBERS counts those that take part.
JSON has members, each with id, value, rank, role ("leader", "heir", "candidate" or
"observer"), since, safe and number, which is larger for one that came later. For a record
in the roster that another program wrote, foreign is true.

Where a hold keeps the election closed (elect run --hold), NOTE says until about when,
by the clock of the host that began COMMAND. JSON has hold, with id, since and until.
A leader that is shown beside a hold may be waiting for its end.

JSON also has lock, the kind that a foreign lock looks like; waiting, how many wait
in line, if the store tells; and hidden, another lock of that name that the URL
does not see. Standard error says so as well. See elect doctor NAME.

Exit status: 0 if each NAME is led, or held by a foreign lock; 1 if nobody leads
at least one of them; 125 if elect failed.`

func newStatus(s *settings) *cobra.Command {
	var out format
	cmd := &cobra.Command{
		Use:               "status [flags] NAME...",
		Short:             "Print who leads",
		Long:              statusLong,
		Args:              someNames,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := s.observe(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			defer store.Close()
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			states, err := look(ctx, store, args, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			for i := range states {
				recognise(ctx, store, &states[i], cmd.ErrOrStderr())
			}
			return printStatus(cmd.OutOrStdout(), out, states)
		},
	}
	outputFlag(cmd, &out)
	return cmd
}

func someNames(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return errors.New("no NAME; use elect status [flags] NAME...")
	}
	for _, name := range args {
		if err := checkElection(name); err != nil {
			return err
		}
	}
	return nil
}

// allNames wants no NAME to be empty.
func allNames(_ *cobra.Command, names []string) error {
	for _, name := range names {
		if err := checkName(name); err != nil {
			return err
		}
	}
	return nil
}

// look reads who leads each election, and who is next.
func look(ctx context.Context, store *stores.Store, names []string, log io.Writer) ([]snapshot.State, error) {
	states := []snapshot.State{}
	for _, name := range names {
		if err := probe(ctx, store, name); err != nil {
			return nil, err
		}
		s, err := snapshot.Read(ctx, store.KV, name, probeTime, func(trouble error) {
			fmt.Fprintf(log, "elect: %s: %s\n", printable(name), oneLine(trouble))
		})
		if err != nil {
			return nil, fmt.Errorf("store %v: %w", store.Address, err)
		}
		states = append(states, s)
	}
	return states, nil
}

// recognise adds what is known of old locks: what a foreign lock looks like, how
// many wait, and what the URL does not see. What cannot be found out is said, and
// no failure.
func recognise(ctx context.Context, store *stores.Store, s *snapshot.State, log io.Writer) {
	if s.State == snapshot.Leader && !store.InLines() {
		return // there is nothing to say
	}
	ctx, cancel := context.WithTimeoutCause(ctx, probeTime, fmt.Errorf("no answer within %v", probeTime))
	defer cancel()
	locks, err := store.OldLocks(ctx, s.Name)
	if err != nil {
		fmt.Fprintf(log, "elect: %s\n", oneLine(err))
	}
	for i, l := range locks {
		switch {
		case l.Hidden():
			s.Hidden = l.String()
			fmt.Fprintf(log, "elect: %s: this URL does not see the lock %s; do: %s\n", printable(s.Name), l, l.Advice)
		case i == 0 && l.Here && s.State != snapshot.Vacant:
			if s.State == snapshot.Foreign {
				s.Lock = l.Kind
			}
			if l.Waiting >= 0 {
				s.Waiting = &l.Waiting
			}
		}
	}
}

// printStatus writes the states; its error says that not everybody is led.
func printStatus(out io.Writer, f format, states []snapshot.State) error {
	write := writeTable
	if f == asJSON {
		write = writeJSON
	}
	if err := write(out, states); err != nil {
		return err
	}
	for _, s := range states {
		if s.State == snapshot.Vacant {
			return exit{status: statusNo}
		}
	}
	return nil
}

func writeJSON(out io.Writer, states []snapshot.State) error {
	for _, s := range states {
		if err := jsonLine(out, s); err != nil {
			return err
		}
	}
	return nil
}

func writeTable(out io.Writer, states []snapshot.State) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	shown := slices.DeleteFunc(columns(), func(c column) bool { return c.when != nil && !slices.ContainsFunc(states, c.when) })
	row := func(cell func(column) string) {
		cells := []string{}
		for _, c := range shown {
			cells = append(cells, cell(c))
		}
		fmt.Fprintln(w, strings.TrimRight(strings.Join(cells, "\t"), "\t"))
	}
	row(func(c column) string { return c.head })
	for _, s := range states {
		row(func(c column) string { return c.cell(s) })
	}
	return w.Flush()
}

// A column of the table says one thing of each state.
type column struct {
	head string
	cell func(snapshot.State) string
	when func(snapshot.State) bool // the column is there if this holds for any state; nil: always
}

func columns() []column {
	return []column{
		{head: "NAME", cell: func(s snapshot.State) string { return printable(s.Name) }},
		{head: "STATE", cell: func(s snapshot.State) string { return s.State }},
		{head: "LEADER", cell: func(s snapshot.State) string { return dash(printable(s.ID)) }},
		{head: "TOKEN", cell: func(s snapshot.State) string { return unless(s.Token == 0, s.Token) }},
		{head: "VALUE", cell: func(s snapshot.State) string { return dash(short(s.Value)) }},
		{
			head: "AGE",
			cell: func(s snapshot.State) string { return dash(age(s.Since, s.Time)) },
			when: func(s snapshot.State) bool { return s.Since != nil },
		},
		{
			head: "RANK", // where ranks are not heeded, all are zero
			cell: func(s snapshot.State) string { return unless(s.Rank == nil, rankOf(s)) },
			when: func(s snapshot.State) bool { return rankOf(s) != 0 },
		},
		{
			head: "HEIR",
			cell: func(s snapshot.State) string { return dash(describeHeir(s.Heir, s.Time)) },
			when: func(s snapshot.State) bool { return s.Heir != nil },
		},
		{
			head: "HEIRS",
			cell: func(s snapshot.State) string { return dash(short(strings.Join(s.Heirs, ","))) },
			when: func(s snapshot.State) bool { return len(s.Heirs) > 0 },
		},
		{
			head: "MEMBERS",
			cell: func(s snapshot.State) string { return dash(describeMembers(s.Members)) },
			when: func(s snapshot.State) bool { return len(s.Members) > 0 },
		},
		{head: "NOTE", cell: note, when: func(s snapshot.State) bool { return note(s) != "" }},
	}
}

func unless(unknown bool, what any) string {
	if unknown {
		return "-"
	}
	return fmt.Sprint(what)
}

// rankOf returns a leader's rank, zero if none is known.
func rankOf(s snapshot.State) int {
	if s.Rank == nil {
		return 0
	}
	return *s.Rank
}

// age returns how long ago something was, by clocks that may differ.
func age(since *time.Time, now time.Time) string {
	if since == nil || since.IsZero() {
		return ""
	}
	return max(now.Sub(*since), 0).Round(time.Second).String()
}

// describeMembers counts the members of a roster.
func describeMembers(all []snapshot.Member) string {
	var candidates, observers, foreign int
	for _, m := range all {
		switch {
		case m.Foreign:
			foreign++
		case m.Role == election.RoleObserver:
			observers++
		default:
			candidates++
		}
	}
	text := []string{}
	for _, some := range []struct {
		n    int
		what string
	}{{candidates, "candidates"}, {observers, "observers"}, {foreign, "foreign"}} {
		if some.n > 0 {
			text = append(text, fmt.Sprint(some.n, " ", some.what))
		}
	}
	return strings.Join(text, ", ")
}

// describeHeir says in words who is next, if anybody.
func describeHeir(h *snapshot.Heir, now time.Time) string {
	if h == nil {
		return ""
	}
	known := []string{}
	if h.Rank != 0 {
		known = append(known, fmt.Sprintf("rank %d", h.Rank))
	}
	if a := age(&h.Since, now); a != "" {
		known = append(known, a)
	}
	if len(known) == 0 {
		return printable(h.ID)
	}
	return fmt.Sprintf("%s (%s)", printable(h.ID), strings.Join(known, ", "))
}

// note says what there is to say of a state beyond who leads.
func note(s snapshot.State) string {
	notes := []string{}
	if closed := describeHold(s.Hold); closed != "" {
		notes = append(notes, closed)
	}
	if s.Lock != "" {
		notes = append(notes, "looks like "+s.Lock)
	}
	if s.Waiting != nil {
		notes = append(notes, fmt.Sprintf("%d waiting", *s.Waiting))
	}
	if s.Hidden != "" {
		notes = append(notes, "another lock is where this URL does not look")
	}
	return strings.Join(notes, ", ")
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
