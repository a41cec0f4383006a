//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/electkv/election/cmd/elect/internal/demo"
	"github.com/electkv/election/internal/history"
)

const demoGroupsLong = `Show five processes that form groups, and check what groups promise.

Groups exclude nobody. Processes that reach each other are one group with a leader, and
when the network is partitioned, each part has a leader of its own. Use an election where
there must be only one leader: see elect demo.

Five processes start, and none reaches another: each is a group of its own. The network
becomes whole, and they are one group. It is partitioned, and two groups lead side by side. It
is whole again. The leader is killed (SIGKILL), and the others go on. It comes back.
The processes speak mutual TLS, through the demo, which can cut their connections.

From what each process has written down, the demo draws who led whom, and checks that
  - each group number has at most one leader
  - all members of a group agree on its leader and its members
  - a process has left a group, and its work for that group is over, before it enters the next
  - processes that reach each other form one group in time

Exit status: 0 if all promises were kept, 1 if one was broken, 125 if elect
failed or not every promise was put to the test, 130 after Ctrl-C.`

// groupInterval is the interval of the processes' heartbeats: short, so that the demo takes much less
// than a minute, and long enough for a busy machine.
const groupInterval = 300 * time.Millisecond

// A groupDemo is what elect demo groups shows.
type groupDemo struct{ out, progress io.Writer }

func newDemoGroups(s *settings) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "groups",
		Short:             "Show five processes that form groups in a network that is partitioned",
		Long:              demoGroupsLong,
		Example:           "  elect demo groups",
		ValidArgsFunction: cobra.NoFileCompletions,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("elect demo groups takes nothing more: %q; the ORDER of an election comes after elect demo", args)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if s.store != "" {
				return errors.New("--store has no effect: groups need no store; leave it out, or use elect demo --store URL for an election")
			}
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
			defer stop()
			d := &groupDemo{out: cmd.OutOrStdout(), progress: os.Stderr}
			return d.run(ctx)
		},
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if wrong, ok := errors.AsType[*pflag.NotExistError](err); ok && cmd.Parent().LocalFlags().Lookup(wrong.GetSpecifiedName()) != nil {
			return fmt.Errorf("--%s is for elections; leave it out, or use elect demo without groups", wrong.GetSpecifiedName())
		}
		return flagError(cmd, err)
	})
	return cmd
}

func (d *groupDemo) run(ctx context.Context) error {
	folder, err := os.MkdirTemp("", "elect-demo-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	v := newView(d.progress)
	m := &demo.Meeting{Interval: groupInterval, Slack: 5 * time.Second, Folder: folder, Command: memberCommand, Tell: v.tellGroups}
	fmt.Fprintf(d.progress, "elect %s: five processes, no store, a heartbeat every %v. The clock starts now.\n\n", version(), groupInterval)
	played, err := m.Perform(ctx)
	if ctx.Err() != nil {
		return exit{status: statusSignal + int(syscall.SIGINT), err: errors.New("interrupted; all processes of the demo are gone")}
	}
	return conclude(d.out, history.TimelineOfGroups(played, 78)+"\n"+history.LegendOfGroups(), played, m.Judge(played), err)
}

func memberCommand(part demo.MemberPart) *exec.Cmd { return again(memberRole, part) }

// member is one of the five processes: elect __member PART.
func member(args []string) error {
	var part demo.MemberPart
	if len(args) != 1 || json.Unmarshal([]byte(args[0]), &part) != nil {
		return errors.New("a member is started by elect demo groups only")
	}
	ctx, stop := untilUnheard()
	defer stop()
	return (&demo.Member{Part: part, Out: os.Stdout}).Run(ctx)
}

// tellGroups tells what happens at a meeting while it happens.
func (v *view) tellGroups(e history.Event) {
	switch e.Kind {
	case history.Ready:
		v.line(e, "starts")
	case history.Started:
		v.line(e, "LEADS "+strings.Join(e.Group.Members, ", "))
	case history.Killed:
		v.line(e, "is killed")
	case history.Fault, history.Healed:
		v.line(e, e.Text)
	case history.Met:
		text := strings.ReplaceAll(e.Text, "\n", "\n"+strings.Repeat(" ", 18))
		v.line(e, fmt.Sprintf("after %.2f s: %s\n", e.Within.Seconds(), text))
	}
}
